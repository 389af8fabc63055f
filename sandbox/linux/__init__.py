"""The kernel's own mechanisms, one module each, in the kernel's words. Plumbing (structs, numbers) never leaves here."""
