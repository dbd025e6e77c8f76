from pyrelay import relay


@relay
def total(p: tuple[float, float]) -> float:
    match p:
        case [a, b]:
            return a + b
