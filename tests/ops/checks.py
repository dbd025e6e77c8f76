"""What the rule tests compare with, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Op, Sample
from pyrelay.ir.types import SizeType, StrType, TensorType, TupleType, Type, is_float
from pyrelay.lower_torch.constants import torch_dtype
from pyrelay.operators.host import failing, stream, text


def assert_has_type(value: Any, ty: Type, sizes: Mapping[str, int]) -> None:
    """Check that a value is of a type whose named dims have the given sizes; a size that only
    the running program knows may be any, but one only."""
    _check_type(value, ty, dict(sizes))


def _check_type(value: Any, ty: Type, sizes: dict[str, int]) -> None:
    match ty:
        case TupleType(fields):
            assert isinstance(value, tuple)
            for part, field in zip(value, fields, strict=True):
                _check_type(part, field, sizes)
        case SizeType(dim):
            assert value == _size(dim, value, sizes)
        case TensorType(shape, dtype) if isinstance(value, torch.Tensor):
            assert len(value.shape) == len(shape)
            pairs = zip(shape, value.shape, strict=True)
            assert tuple(value.shape) == tuple(_size(d, n, sizes) for d, n in pairs)
            assert value.dtype == torch_dtype(dtype)
        case StrType():
            assert isinstance(value, str)
        case TensorType((), dtype):
            assert not is_float(dtype)
            assert isinstance(value, bool) == (dtype.name == "bool")
        case _:
            raise AssertionError(f"{value} of {ty}")


def _size(dim: Dim, found: int, sizes: dict[str, int]) -> int:
    if dim.name is not None:
        sizes.setdefault(dim.name, found)
    return dim.evaluate(sizes)


def assert_equal(
    actual: Any, expected: Any, *, dtype: bool = True, rtol: float, atol: float
) -> None:
    if expected is None:
        return
    if isinstance(expected, tuple | list):
        for a, e in zip(actual, expected, strict=True):
            assert_equal(a, e, dtype=dtype, rtol=rtol, atol=atol)
        return
    if isinstance(expected, str):
        assert actual == expected
        return
    torch.testing.assert_close(
        torch.as_tensor(actual),
        torch.as_tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        check_dtype=dtype,
    )


def operands_of(sample: Sample, values: Sequence[torch.Tensor]) -> list[Any]:
    """Return the sample's operands with tensors in place of their descriptions."""
    rest = iter(values)

    def fill(arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple(fill(part) for part in arg)
        return arg if arg is None or isinstance(arg, bool | int | float | str) else next(rest)

    return [fill(arg) for arg in sample.operands]


_WITHOUT_SAMPLES = (
    failing.fail,
    failing.no_element,
    failing.no_structure,
    stream.has_next,
    stream.next_element,
    stream.start_iteration,
    text.stop,
)


def samples(op: Op) -> list[Sample]:
    """Return the samples of an operator that gives a value; none of one that never does, or that
    takes a caller's iterable, which cannot be written down."""
    if op in _WITHOUT_SAMPLES:
        return []
    found = list(op.samples())
    assert found, f"{op.name} has no samples"
    return found
