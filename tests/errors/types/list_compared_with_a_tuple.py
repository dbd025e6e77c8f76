from pyrelay import Int, relay


@relay
def is_origin(place: list[Int]) -> bool:
    return place == (0, 0)
