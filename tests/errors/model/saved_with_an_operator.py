"""A saved model calls an operator of the user's own, which is not given when it is loaded."""

from pathlib import Path

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.ir.rules import same_as_operand

N = Dim("N")


@relay.operator(type_rule=same_as_operand(), samples=())
def halved(x: torch.Tensor) -> torch.Tensor:
    """Halve."""
    return x / 2


@relay_model
def line(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 1)]:
    return halved(relay.linear(x, out_features=1))


def main(folder: Path) -> None:
    """Save and load."""
    relay.export_model(relay.create_model(line)).save(folder / "line.safetensors")
    relay.load_model(folder / "line.safetensors")
