"""A misspelt name gets the near miss."""

from pyrelay import Float, relay


@relay
def area(width: Float, height: Float) -> Float:
    return width * heigth
