from pyrelay import Int, relay


@relay
def or_one(x: Int | None) -> Int:
    match x:
        case 0:
            return 1
        case None:
            return 2
