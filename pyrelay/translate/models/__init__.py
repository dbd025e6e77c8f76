"""Models in programs: their parameters, gradients and updates."""
