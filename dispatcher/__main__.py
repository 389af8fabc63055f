"""Be `python -m dispatcher`: the same as the command `dispatcher`."""

from dispatcher.cli.main import main

if __name__ == "__main__":
    main()
