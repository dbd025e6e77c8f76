"""An assertion in the body of an operator is none of the program's own."""

from typing import Any

import torch

from pyrelay import Float, Tensor, relay
from pyrelay.ir.rules import same_as_operand


@relay.operator(type_rule=same_as_operand(), grad=None, samples=())
def checked_root(x: Any) -> Any:
    """Give square roots."""
    assert bool((x > 0).all()), "roots are of positive numbers"
    return x.sqrt()


@relay
def norm(x: Tensor[Float, (2,)]) -> Float:
    return checked_root(x - 2.0).sum()


def main() -> None:
    norm(torch.ones(2))
