from pyrelay import relay


@relay
def name(n: int, loud: bool) -> str:
    match n, loud:
        case 0, _:
            return "none"
        case 1, True:
            return "ONE"
        case n, False:
            return "some"
