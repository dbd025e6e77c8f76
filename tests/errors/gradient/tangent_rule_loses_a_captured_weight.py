"""A function with a rule for forward mode captures what is differentiated."""

from pyrelay import Float, relay


@relay
def slope(x: Float, w: Float) -> Float:
    def scaled(y: Float, w: Float) -> Float:
        def rule(primals, tangents):
            return primals[0] * w, tangents[0] * w

        return relay.custom_jvp(rule)(lambda z: z * w)(y)

    return relay.jvp(scaled)((x, w), (1.0, 1.0))[1]
