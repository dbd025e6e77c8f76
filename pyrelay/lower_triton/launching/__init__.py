"""Built kernels, started: by call, from a tape, as a CUDA graph."""
