"""The rule of `custom_jvp` takes arguments and directions one by one, not as two tuples."""

from pyrelay import Float, Int, relay


@relay
def rule(x: Float, k: Int, d: Float) -> tuple[Float, Float]:
    return x * k, d * k


@relay.custom_jvp(rule)
@relay
def scaled(x: Float, k: Int) -> Float:
    return x * k
