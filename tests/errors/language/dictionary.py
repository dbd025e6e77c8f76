"""No dictionaries."""

from pyrelay import Float, relay


@relay
def pair(x: Float) -> Float:
    d = {"x": x}
    return d["x"]
