from pyrelay import Float, relay


@relay
def level(x: Float | None) -> Float:
    return x
