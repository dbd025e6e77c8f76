from pyrelay import Float, Ref, relay


@relay
def bump(total: Ref[Float], by: Float) -> Float:
    total.value += by
    return total.value


bump(3.0, 1.0)
