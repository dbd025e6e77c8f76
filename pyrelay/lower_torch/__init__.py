"""Operators as straight-line torch code: works everywhere, the reference of other lowerings."""
