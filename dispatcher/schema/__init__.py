"""Schemas: the `core` dialect, the full dialect, and the bridge from a typed function's signature."""
