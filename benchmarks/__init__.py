"""Benchmarks: one file, one question. Run `python -m benchmarks NAME [--json]`."""
