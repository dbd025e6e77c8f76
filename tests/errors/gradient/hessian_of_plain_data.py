"""A Hessian over recursive data whose type cannot show the shapes of the derivatives."""

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class More:
    value: Float
    rest: "Chain"


Chain = Nothing | More


@relay
def summed(chain: Chain) -> Float:
    match chain:
        case Nothing():
            return 0.0
        case More(value, rest):
            return value * value * summed(rest)


def main() -> None:
    relay.hessian(summed)(More(1.0, Nothing()))
