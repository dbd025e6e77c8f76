from dataclasses import dataclass

from pyrelay import Int, relay


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Single:
    x: Int


Numbers = Empty | Single


@dataclass(frozen=True)
class Empty2:
    pass


@dataclass(frozen=True)
class Single2:
    x: Int


Numbers2 = Empty2 | Single2


@relay
def total(n: Numbers) -> Int:
    match n:
        case Empty():
            return 0
        case Single(x):
            return x


@relay
def wrong() -> Int:
    return total(Empty2())
