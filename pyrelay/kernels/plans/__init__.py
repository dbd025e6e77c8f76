"""The loops of kernels as terms: what is computed and stored, before any backend writes it."""
