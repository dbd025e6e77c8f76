"""No parameter holds floats."""

from pyrelay import Int, relay


@relay
def double(n: Int) -> Int:
    return n * 2


@relay
def use(n: Int):
    return relay.grad(double)(n)
