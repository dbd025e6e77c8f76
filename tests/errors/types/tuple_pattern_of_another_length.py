from pyrelay import relay


@relay
def total(p: tuple[float, float]) -> float:
    match p:
        case a, b, c:
            return a + b + c
        case _:
            return 0.0
