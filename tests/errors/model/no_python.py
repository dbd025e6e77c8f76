"""A function that calls an operator of the user's own is printed as Python."""

from typing import Any

import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.ir.rules import same_as_operand

N = Dim("N")


def made() -> Any:
    """Give a function over an operator that no module has."""

    @relay.operator(type_rule=same_as_operand(), samples=())
    def halved(x: torch.Tensor) -> torch.Tensor:
        """Halve."""
        return x / 2

    @relay
    def quarter(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return halved(halved(x))

    return quarter


def main() -> None:
    """Print it."""
    made().show("python")
