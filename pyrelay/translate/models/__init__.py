"""Models and transforms in programs: creation, calls, gradients and updates."""
