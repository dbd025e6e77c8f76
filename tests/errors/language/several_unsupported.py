"""All constructs outside of the language are named at once."""

from pyrelay import Float, relay


@relay
def muddle(x: Float) -> Float:
    global y
    try:
        y = {"x": x}
    finally:
        pass
    return x
