"""Kernels, regions and scalar functions in C, for CPUs."""
