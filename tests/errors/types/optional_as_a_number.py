from pyrelay import Int, relay


@relay
def next_one(x: Int | None) -> Int:
    return x + 1
