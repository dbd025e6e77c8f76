"""Sizes on the host: of tensors, of one dim, as integers, and whether they are equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, product, sum_of
from ...ir.equations import root_of_quotient
from ...ir.op import (
    Effect,
    Host,
    Layouts,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import axis, integral, with_rank
from ...ir.types import UNIT, SizeType, TupleType, Type, show
from ..shared.failures import SizesDiffer

_SIZE: Final = NoGradient("a size is an integer")


size: Final = Op(
    name="size",
    doc="The value of a dim.",
    params=(attribute("dim", convert=kinds.dim),),
    type_rule=lambda call: SizeType(call.attrs["dim"]),
    lowering=Host(lambda dim: dim),
    grad=_SIZE,
    samples=lambda: (Sample((), {"dim": 3}), Sample((), {"dim": 0})),
)


class SizeNotTold(ValueError):  # noqa: N818  becomes a diagnostic at the call
    """No size solves an equation, or every size does."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason


def _solved_size_type(call: RuleCall) -> Type:
    total = sum_of(factor * dim for factor, dim in call.attrs["terms"])
    quotient, power = total // call.attrs["divisor"], call.attrs["power"]
    root = quotient if power == 1 else quotient.exact_root(power)
    if root is None:
        call.clash(f"no size to the power of {power} is {quotient}")
    return SizeType(root)


def _solved_size(name: str, terms: Sequence[tuple[int, int]], divisor: int, power: int) -> int:
    total = sum(factor * value for factor, value in terms)
    if divisor == 0:
        raise SizeNotTold(name, f"it is {total} divided by 0")
    found = root_of_quotient(total, divisor, power)
    if found is None:
        subject = "it" if power == 1 else f"to the power of {power} it"
        raise SizeNotTold(name, f"{subject} is {total} divided by {divisor}, which is no size")
    return found


solved_size: Final = Op(
    name="solved_size",
    doc="A size that no value shows by itself, as the root of a quotient of a sum of products.",
    params=(
        attribute("name", convert=kinds.text),
        attribute("terms", convert=kinds.tuple_of(kinds.factors)),
        attribute("divisor", convert=kinds.dim),
        attribute("power", 1, convert=kinds.at_least(1, kinds.whole)),
    ),
    type_rule=_solved_size_type,
    lowering=Host(_solved_size),
    grad=_SIZE,
    samples=lambda: (
        Sample((), {"name": "n", "terms": ((1, 7), (-1, 1)), "divisor": 2}),
        Sample((), {"name": "n", "terms": ((2, 6),), "divisor": 3}),
        Sample((), {"name": "n", "terms": ((1, 18),), "divisor": 2, "power": 2}),
    ),
)


def _as_size_type(call: RuleCall) -> Type:
    ty = call.type(0)
    if isinstance(ty, SizeType):
        return ty
    integral(call, 0)
    with_rank(call, 0, 0)
    return SizeType(call.solver.fresh_dim("size"))


class NegativeSize(ValueError):  # noqa: N818  as `SizesDiffer`
    """An integer is negative that a tensor is to have as a size."""


def _as_size(value: Any) -> int:
    found = int(value)
    if found < 0:
        raise NegativeSize(f"a size is {found}")
    return found


as_size: Final = Op(
    name="as_size",
    doc="An integer as a size, which types may speak of; it must not be negative.",
    params=(operand("value"),),
    type_rule=_as_size_type,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Host(_as_size),
    grad=_SIZE,
    samples=lambda: (Sample((3,)), Sample((TensorSpec((), "int64", 0, 5),))),
)


as_bound: Final = Op(
    name="as_bound",
    doc="An integer as a bound of a slice; a negative one counts from the end.",
    params=(operand("value"),),
    type_rule=_as_size_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Host(int),
    grad=_SIZE,
    samples=lambda: (Sample((-3,)), Sample((TensorSpec((), "int64", -5, 5),))),
)


def _samples() -> tuple[Sample, ...]:
    return tuple(Sample((TensorSpec(shape),)) for shape in ((2, 3), (), (0, 3)))


shape: Final = Op(
    name="shape",
    doc="The sizes of a tensor, as a tuple.",
    params=(operand("input"),),
    type_rule=lambda call: TupleType(tuple(SizeType(d) for d in call.tensor(0).shape)),
    layouts=Layouts.ANY,
    lowering=Host(lambda x: tuple(getattr(x, "shape", ()))),
    grad=_SIZE,
    samples=_samples,
)


def _dim_size_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    if source.rank == 0:
        way = "`range(n)` counts to a number; `len` takes a tensor, a list or a string"
        call.clash("a number has no size", 0, help=way)
    return SizeType(source.shape[axis(call, call.attrs["dim"], source.rank)])


dim_size: Final = Op(
    name="dim_size",
    doc="The size of one dim of a tensor.",
    params=(operand("input"), attribute("dim", convert=kinds.axis)),
    type_rule=_dim_size_type,
    layouts=Layouts.ANY,
    lowering=Host(lambda x, dim: x.shape[dim]),
    grad=_SIZE,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),), {"dim": 0}),
        Sample((TensorSpec((0, 3)),), {"dim": -1}),
        Sample((TensorSpec((0, 3)),), {"dim": 0}),
    ),
)


rank: Final = Op(
    name="rank",
    doc="The number of dims of a tensor.",
    params=(operand("input"),),
    type_rule=lambda call: SizeType(Dim.of(call.tensor(0).rank)),
    layouts=Layouts.ANY,
    lowering=Host(lambda x: len(getattr(x, "shape", ()))),
    grad=_SIZE,
    samples=_samples,
)


numel: Final = Op(
    name="numel",
    doc="The number of elements of a tensor.",
    params=(operand("input"),),
    type_rule=lambda call: SizeType(product(call.tensor(0).shape)),
    layouts=Layouts.ANY,
    lowering=Host(lambda x: math.prod(getattr(x, "shape", ()))),
    grad=_SIZE,
    torch_name=None,
    samples=_samples,
)


def _same_length_type(call: RuleCall) -> Type:
    ty = call.type(0)
    fields = ty.fields if isinstance(ty, TupleType) else ()
    if not fields:
        call.clash("`same_length` takes a tuple of sizes", 0)
    sizes = [call.solver.resolve(f) for f in fields]
    for found in sizes:
        if not isinstance(found, SizeType):
            call.clash(f"`same_length` takes sizes, not {show(found)}", 0)
    first = sizes[0]
    assert isinstance(first, SizeType)
    for other in sizes[1:]:
        assert isinstance(other, SizeType)
        message = f"these run side by side, but have {first.dim} and {other.dim} elements"
        call.unify_dims(first.dim, other.dim, 0, message)
    return first


def _same_length(sizes: Sequence[int]) -> int:
    for other in sizes[1:]:
        if other != sizes[0]:
            raise ValueError(f"these run side by side, but have {sizes[0]} and {other} elements")
    return sizes[0]


same_length: Final = Op(
    name="same_length",
    doc="The one value of several sizes, which must be equal, as when tensors are zipped.",
    params=(operand("sizes"),),
    type_rule=_same_length_type,
    effect=Effect.FAIL,
    lowering=Host(_same_length),
    grad=_SIZE,
    samples=lambda: (Sample(((3, 3),)), Sample(((0,),))),
)


def _equal_sizes(left: int, right: int) -> tuple[()]:
    if left != right:
        raise SizesDiffer(left, right)
    return ()


equal_sizes: Final = Op(
    name="equal_sizes",
    doc="Stops the program unless two sizes are equal, which their types do not imply.",
    params=(attribute("left", convert=kinds.dim), attribute("right", convert=kinds.dim)),
    type_rule=lambda call: UNIT,
    effect=Effect.FAIL,
    lowering=Host(_equal_sizes),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample((), {"left": 3, "right": 3}),),
)
