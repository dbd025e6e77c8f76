from dataclasses import dataclass

from pyrelay import Int, relay
from pyrelay.prelude import Cons, List, Nil


@dataclass(frozen=True)
class Left:
    value: List[Int]


@dataclass(frozen=True)
class Right:
    value: Int


Either = Left | Right


@relay
def first(a: Either, b: Either) -> Int:
    match a, b:
        case Left(Cons(x, _)), _:
            return x
        case _, Right(y):
            return y
        case Right(x), Left(Nil()):
            return x
