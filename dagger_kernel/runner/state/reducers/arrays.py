"""NumPy arrays."""
