"""From translated programs to A-normal form, with blocks by effect."""
