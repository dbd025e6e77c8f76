"""`relay.const`: a tensor or array that a program captures by value."""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
import torch

from ...diagnostics.catalogue.model import NotAModel
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...ir.expr import Constant, TensorData
from ...ir.types import DType
from .text import describe
from .values import tensor_type


@final
class Const:
    """A captured tensor: its elements are part of the program, so they never change in it."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value: Final = value
        self.__relay__: Final = constant_of(value)

    def __repr__(self) -> str:
        return f"relay.const({describe(self.value)})"


def constant_of(value: torch.Tensor) -> Constant:
    """Return the elements of a tensor as a constant."""
    ty = tensor_type(value, "relay.const")
    assert isinstance(ty.dtype, DType)
    flat = value.detach().cpu().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    elements = TensorData(ty.dtype, tuple(value.shape), data)
    return Constant(elements, ty, span=NOWHERE)


def const(value: Any) -> Const:
    """Return a tensor, array or number as a constant of the programs that mention it.

    The elements are copied now. Raises RunError for anything else.
    """
    if isinstance(value, torch.Tensor):
        return Const(value.clone())
    if isinstance(value, np.ndarray | np.generic | bool | int | float):
        return Const(torch.tensor(value))
    raise RunError(
        NotAModel(
            "relay.const takes a tensor, an array or a number",
            describe(value),
            "make it a tensor first: relay.const(torch.tensor(...))",
        )
    )
