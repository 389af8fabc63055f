"""Load one handler in a clean process and say in one line on stderr what is wrong with it. Run by file path.

Reads {"roots", "handler"} from stdin; exits 0 if the handler loads to something callable.
"""

import json
import os
import sys

LOADED = b"loaded"


def main() -> None:
    """Load and end; never run the handler."""
    job = json.loads(sys.stdin.buffer.read())
    roots = job["roots"] + [entry for entry in sys.path if entry not in job["roots"]]
    # Ours first, for as long as it takes to import ourselves: a project may have a folder of our name.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    import sandbox
    import sandbox.loading
    from sandbox.loading import load_handler

    sys.path[:] = roots

    sandbox._worker_process = True
    try:
        function, _ = load_handler(job["handler"])
    except BaseException as error:
        said = " ".join(str(error).split())[:200]
        os.write(2, f"\n{type(error).__name__}: {said}\n".encode("utf-8", "backslashreplace"))
        os._exit(1)
    if not callable(function):
        os.write(2, b"\nit loads to something that cannot be called\n")
        os._exit(1)
    os.write(1, LOADED)  # said aloud: a module that ends the process while it is imported must not pass for loaded
    os._exit(0)


if __name__ == "__main__":
    main()
