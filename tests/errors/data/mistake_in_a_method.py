"""A mistake in a method is shown in the method."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Layer:
    weight: Tensor[Float, (3, 4)]

    def apply(self, x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
        return self.weight @ x


@relay
def run(layer: Layer, x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return layer.apply(x)
