from pyrelay import relay


@relay
def total(n: int) -> int:
    match n:
        case {"value": v}:
            return v
        case _:
            return 0
