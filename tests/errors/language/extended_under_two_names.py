"""`+=` extends a list in place, which another name has as well."""

from pyrelay import relay


@relay
def lengths(n: int) -> int:
    xs = [n]
    ys = xs
    xs += [n + 1]
    return len(ys)
