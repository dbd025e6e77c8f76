from pyrelay import Float, Int, relay


@relay
def pick(x: Float, n: Int) -> Float:
    xs = [x, 2 * x, 3 * x]
    return xs[n]


def main() -> None:
    pick(1.0, 3)
