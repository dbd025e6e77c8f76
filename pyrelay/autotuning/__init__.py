"""Ways to do one thing, timed: the fastest is taken and remembered between processes."""
