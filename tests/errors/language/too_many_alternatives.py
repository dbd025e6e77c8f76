from pyrelay import relay


@relay
def total(a: int, b: int, c: int) -> int:
    match a, b, c:
        case 1 | 2 | 3 | 4 | 5, 1 | 2 | 3 | 4 | 5, 1 | 2 | 3 | 4 | 5:
            return 1
        case _:
            return 0
