"""An object of the script that means nothing to compiled code."""

from pyrelay import Float, relay


class Config:
    rate = 0.1


config = Config()


@relay
def step(x: Float) -> Float:
    return x * config.rate
