"""Pure tensor code cut into kernels and regions."""
