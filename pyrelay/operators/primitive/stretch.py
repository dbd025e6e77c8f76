"""Broadcasting of sizes that only the running program knows, as Relay's `?` are.

Where types say which dims broadcast, operators do it themselves. A size that may turn out to be 1
is stretched in front of the operator, so that all that follows sees operands of one shape.
"""

from __future__ import annotations

from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE
from ...ir.op import (
    Effect,
    Layouts,
    Library,
    Linear,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import TensorType, Type
from ..shared.failures import SizesDiffer


def _size(call: RuleCall) -> Type:
    source, size = call.tensor(0), tuple(map(call.solver.resolve_dim, call.attrs["size"]))
    if len(size) != source.rank:
        call.clash(f"`{call.name}` keeps the rank", 0)
    narrow, wide = (source.shape, size) if call.op is stretch else (size, source.shape)
    for have, want in zip(narrow, wide, strict=True):
        numbers = have.constant, want.constant
        if None not in numbers and have not in (ONE, want):
            call.clash(f"size {have} is neither 1 nor {want}", 0)
    return TensorType(size, source.dtype)


def _stretched(_: Any, x: Any, size: tuple[int, ...]) -> Any:
    for have, want in zip(x.shape, size, strict=True):
        if have not in (1, want):
            raise SizesDiffer(have, want)
    return x.expand(size)


stretch: Final = Op(
    name="stretch",
    doc="Dims repeated that turn out to have size 1; the others must have their new size.",
    params=(operand("input"), attribute("size", convert=kinds.shape)),
    type_rule=_size,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.FIXED,
    layouts=Layouts.IMAGES,
    lowering=Library(_stretched),
    push=Linear(("input",)),
    grad=lambda p: (unstretch(p.g, size=p.args[0].shape),),
    samples=lambda: (
        Sample((TensorSpec((3, 1)),), {"size": (3, 4)}),
        Sample((TensorSpec((1, 1)),), {"size": (1, 2)}),
        Sample((TensorSpec((2, 3)),), {"size": (2, 3)}),
        Sample((TensorSpec((1, 3)),), {"size": (0, 3)}),
    ),
)

unstretch: Final = Op(
    name="unstretch",
    doc="The sum over what `stretch` repeated.",
    params=(operand("input"), attribute("size", convert=kinds.shape)),
    type_rule=_size,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(lambda torch, x, size: x.sum_to_size(size)),
    push=Linear(("input",)),
    grad=lambda p: (stretch(p.g, size=p.args[0].shape),),
    samples=lambda: (
        Sample((TensorSpec((3, 4)),), {"size": (3, 1)}),
        Sample((TensorSpec((1, 2)),), {"size": (1, 1)}),
        Sample((TensorSpec((2, 3)),), {"size": (2, 3)}),
        Sample((TensorSpec((0, 3)),), {"size": (1, 3)}),
    ),
)
