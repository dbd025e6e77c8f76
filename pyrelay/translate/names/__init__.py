"""The binding of each name at each place of a function."""
