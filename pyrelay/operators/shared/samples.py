"""Inputs that whole families of operators share in the rule tests.

Each function covers what its family must survive: equal shapes, broadcasting, rank 0, no elements,
strided storage, numbers, and integers where the family takes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...ir.op import Sample, TensorSpec


def filled(value: float, *shape: int) -> TensorSpec:
    """Return a float tensor of equal elements, for ties and special values."""
    return TensorSpec(shape, low=value, high=value)


def binary_samples() -> Iterable[Sample]:
    """Return pairs of tensors: equal shapes, broadcast, 0-d, empty, strided, with a number."""
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4))))
    yield Sample((TensorSpec((2, 1, 4)), TensorSpec((3, 1))))
    yield Sample((TensorSpec(()), TensorSpec((3,))))
    yield Sample((TensorSpec(()), TensorSpec(())))
    yield Sample((TensorSpec((0, 3)), TensorSpec((3,))))
    yield Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3))))
    yield Sample((TensorSpec((3,)), 1.5))


def integer_pairs() -> Iterable[Sample]:
    """Return pairs with integers: two of one dtype, with a float, with a number, with ties."""
    yield Sample((TensorSpec((3, 4), "int64", -9, 9), TensorSpec((4,), "int64", 1, 9)))
    yield Sample((TensorSpec((5,), "int32", -9, 9), TensorSpec((5,), "int32", 1, 9)))
    yield Sample((TensorSpec((3,)), TensorSpec((3,), "int64", 1, 5)))
    yield Sample((TensorSpec((), "int64", -9, 9), TensorSpec((), "int64", 1, 9)))
    yield Sample((TensorSpec((), "int64", -9, 9), TensorSpec((3,))))
    yield Sample((TensorSpec((3,), "int64", -5, 5), 2))
    yield Sample((TensorSpec((3,), "int64", 2, 2), TensorSpec((3,), "int64", 2, 2)))


def numeric_pairs() -> Iterable[Sample]:
    """Return the pairs that arithmetic takes: floats, then integers."""
    yield from binary_samples()
    yield from integer_pairs()


def pairs_between(low: float, high: float, other_low: float, other_high: float) -> Iterable[Sample]:
    """Return pairs whose elements lie in two ranges, for operators with a narrower domain."""
    left, right = (low, high), (other_low, other_high)
    yield Sample((_floats((3, 4), left), _floats((3, 4), right)))
    yield Sample((_floats((2, 1, 4), left), _floats((3, 1), right)))
    yield Sample((_floats((), left), _floats((3,), right)))
    yield Sample((_floats((0, 3), left), _floats((3,), right)))
    strided = TensorSpec((4, 3), low=low, high=high, contiguous=False)
    yield Sample((strided, _floats((4, 3), right)))


def tied_pairs() -> Iterable[Sample]:
    """Return pairs of equal floats, where operators that choose must share their gradient."""
    yield Sample((filled(1.0, 3), filled(1.0, 3)), smooth=False)
    yield Sample((filled(0.0, 2, 2), filled(0.0)), smooth=False)


def floats_between(low: float, high: float) -> Iterable[Sample]:
    """Return float tensors with elements in a range: matrix, 0-d, empty, strided, double."""
    yield Sample((_floats((3, 4), (low, high)),))
    yield Sample((_floats((), (low, high)),))
    yield Sample((_floats((0, 3), (low, high)),))
    yield Sample((TensorSpec((2, 3, 4), low=low, high=high, contiguous=False),))
    yield Sample((TensorSpec((5,), "float64", low, high),))


def unary_samples() -> Iterable[Sample]:
    """Return float tensors of every form."""
    return floats_between(-2.0, 2.0)


def real_samples() -> Iterable[Sample]:
    """Return float tensors of every form, then integers and bools, which become float32."""
    yield from unary_samples()
    yield Sample((TensorSpec((4,), "int64", -2, 3),))
    yield Sample((TensorSpec((), "int64", -2, 3),))
    yield Sample((TensorSpec((4,), "bool"),))


def numeric_samples() -> Iterable[Sample]:
    """Return float tensors of every form, then integers, which stay integers."""
    yield from unary_samples()
    yield Sample((TensorSpec((4,), "int64", -5, 5),))
    yield Sample((TensorSpec((2, 2), "int32", -5, 5),))
    yield Sample((TensorSpec((), "int64", -5, 0),))


def kinked_samples() -> Iterable[Sample]:
    """Return inputs of an operator that has a kink or a step at 0."""
    yield from numeric_samples()
    yield Sample((filled(0.0, 3),), smooth=False)


def _floats(shape: tuple[int, ...], bounds: tuple[float, float]) -> TensorSpec:
    return TensorSpec(shape, low=bounds[0], high=bounds[1])


def derivative_samples(
    low: float, high: float, given: Iterable[dict[str, Any]]
) -> Iterable[Sample]:
    """Return cotangents beside operands or results between two numbers, with each of some
    attributes."""
    for attrs in given:
        at = TensorSpec((3, 4), low=low, high=high)
        yield Sample((TensorSpec((3, 4)), at), attrs)
        yield Sample((TensorSpec(()), TensorSpec((), low=low, high=high)), attrs)
        yield Sample((TensorSpec((0, 3)), TensorSpec((0, 3))), attrs)
        strided = TensorSpec((4, 3), low=low, high=high, contiguous=False)
        yield Sample((TensorSpec((4, 3)), strided), attrs)
        yield Sample((TensorSpec((5,), "float64"), TensorSpec((5,), "float64", low, high)), attrs)
