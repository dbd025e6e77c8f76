from dataclasses import dataclass

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Box:
    value: Tensor[Float, ...]


@relay
def total(box: Box) -> Float:
    return relay.sum(box.value)
