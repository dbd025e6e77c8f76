from pyrelay import Float, Tensor, relay


@relay
def first(x: Tensor[Float, (3,)]) -> int:
    match x:
        case 0:
            return 0
        case _:
            return 1
