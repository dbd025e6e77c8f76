"""A saved model calls two operators that have one name: its text would take one for the other."""

from pathlib import Path
from typing import Any

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.ir.rules import same_as_operand

N = Dim("N")


def scaled(by: float) -> Any:
    """Give an operator."""

    @relay.operator(type_rule=same_as_operand(), samples=())
    def times(x: torch.Tensor) -> torch.Tensor:
        """Scale."""
        return x * by

    return times


double, triple = scaled(2.0), scaled(3.0)


@relay_model
def line(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 1)]:
    return double(triple(relay.linear(x, out_features=1)))


def main(folder: Path) -> None:
    """Save it."""
    relay.export_model(relay.create_model(line)).save(folder / "line.safetensors")
