"""A group of fused operators as Triton kernels: their text first, then what builds and runs it."""
