from pyrelay import Float, relay
from pyrelay.prelude import hd, tl


@relay
def second(x: Float) -> Float:
    xs = [x]
    return hd(tl(xs))


def main() -> None:
    second(1.0)
