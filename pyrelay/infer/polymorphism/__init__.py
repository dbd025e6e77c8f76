"""Functions whose types their uses choose."""
