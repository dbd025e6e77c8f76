from pyrelay import Float, relay


@relay
def program(x: Float) -> Float:
    x.value = 2.0
    return x


program.check()
