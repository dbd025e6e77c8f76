"""Constants and dtypes of the IR as torch's, and the functions of `aten`, which torch's own
derivatives call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch

from ..ir.expr import Constant, TensorData, type_of
from ..ir.types import TEXT_DTYPES, DType, SizeType, is_float, known_dtype

_BY_NAME: Final[dict[str, torch.dtype]] = {name: getattr(torch, name) for name in TEXT_DTYPES}


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return torch's dtype of the same name."""
    return _BY_NAME[dtype.name]


def dtype_of(constant: Constant) -> DType:
    """Return the element type of a typed constant that is a number."""
    return known_dtype(type_of(constant))


def tensor_constant(constant: Constant, device: torch.device) -> torch.Tensor:
    """Return a constant as a tensor on the device; numbers become 0-d tensors."""
    if isinstance(constant.value, TensorData):
        return _tensor_of_data(constant.value).to(device)
    return torch.tensor(constant.value, dtype=torch_dtype(dtype_of(constant)), device=device)


def is_host_number(constant: Constant) -> bool:
    """Return whether the constant is a Python value at run time: an int, bool, size or string."""
    if isinstance(constant.value, TensorData):
        return False
    if isinstance(constant.value, str) or isinstance(constant.ty, SizeType):
        return True
    return not is_float(dtype_of(constant))


def _tensor_of_data(data: TensorData) -> torch.Tensor:
    dtype = torch_dtype(data.dtype)
    if not data.data:
        return torch.empty(data.shape, dtype=dtype)
    # A bytearray, because torch refuses to alias memory that it must not write.
    return torch.frombuffer(bytearray(data.data), dtype=dtype).reshape(data.shape)


@cache
def kernel(name: str) -> Callable[..., Any]:
    """Return the function of a name as torch writes it: `library::name.overload`; without a library
    `aten`'s, without an overload the form with operands as arguments.

    `torch.ops.aten.tanh_backward(...)` looks three names up and goes through two Python calls, each
    time; a generated program holds the function inside, which saves a fifth of a small call.
    """
    library, _, rest = name.rpartition("::")
    function, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, library or "aten"), function)
    return getattr(packet, overload or "default")._op  # noqa: SLF001  all that the public object does is to call it
