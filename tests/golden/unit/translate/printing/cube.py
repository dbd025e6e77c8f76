from pyrelay import Float, relay


@relay
def cube(x: Float) -> Float:
    return x * x * x
