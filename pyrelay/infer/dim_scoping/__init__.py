"""Which sizes exist where they are used, and which only the running program knows."""
