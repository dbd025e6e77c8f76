from pyrelay import Float, relay


@relay
def twice(x: Float) -> Float:
    apply = lambda f: f(f)
    return apply(lambda y: y + x)
