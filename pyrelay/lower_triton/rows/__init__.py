"""Kernels that reduce rows."""
