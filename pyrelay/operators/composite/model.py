"""Operators of models: raw parameters, and the initial values of all hidden ones."""

from __future__ import annotations

from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import (
    Hidden,
    HiddenKind,
    Init,
    Library,
    Linear,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    View,
    attribute,
    operand,
)
from ...ir.rules import same_as_operand
from ...ir.types import UNKNOWN, TensorType, Type, TypeHole, float32, float64, int64
from ..shared import moving, philox

KEY_INIT: Final = "key"
"""The `init` of a random key: one of its own for each seed and path."""

_INIT: Final = kinds.word(*(kind.name.lower() for kind in Init), KEY_INIT)


def _initial_type(call: RuleCall) -> Type:
    init, size = call.attrs["init"], call.attrs["size"]
    if init == KEY_INIT:
        return TensorType((Dim.of(2),), int64)
    if size is None:
        return UNKNOWN  # the place where the parameter is used says
    return TensorType(size, call.attrs["dtype"] or float32)


def _stream(torch: Any, seed: int, path: str) -> Any:
    """Return the key for a parameter, which depends on nothing but the seed and its name."""
    import hashlib  # only a model that is made pays for it

    digest = hashlib.sha256(path.encode()).digest()
    key = philox.key_of(torch, "cpu", seed)
    return philox.fold(torch, key, int.from_bytes(digest[:8], "little", signed=True))


def _initial(
    torch: Any,
    device: Any,
    init: str,
    seed: int,
    path: str,
    size: tuple[int, ...] | None,
    dtype: Any,
    fan_in: int | None,
) -> Any:
    dtype = dtype or torch.float32
    if init == KEY_INIT:
        return _stream(torch, seed, path).to(device)
    assert size is not None, "inference fills in the size"
    if init in ("zeros", "ones"):
        return torch.full(size, float(init == "ones"), dtype=dtype, device=device)
    count = 1
    for each in size:
        count *= each
    # Drawn on the CPU, where the bits do not depend on the device, and in double precision,
    # where they hardly depend on the machine's mathematics.
    found = philox.normal(torch, _stream(torch, seed, path), count, torch.float64).reshape(size)
    if init == "fan_in":
        if fan_in is None:
            fan_in = max(1, count // size[0]) if size and size[0] else 1
        found = found * fan_in**-0.5
    return found.to(device=device, dtype=dtype)


initial: Final = Op(
    name="initial",
    doc="The initial value of a hidden parameter: a function of the seed and of its path alone. "
    "`fan_in` is the product of all sizes but the first unless given.",
    params=(
        attribute("init", convert=_INIT),
        attribute("seed", convert=kinds.size),
        attribute("path", convert=kinds.text),
        attribute("size", None, kinds.optional(kinds.shape)),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
        attribute("fan_in", None, kinds.optional(kinds.size)),
    ),
    type_rule=_initial_type,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(_initial),
    grad=NoGradient("depends on no operand"),
    samples=lambda: (
        Sample((), {"init": "fan_in", "seed": 0, "path": "fc.weight", "size": (4, 3)}),
        Sample((), {"init": "normal", "seed": 1, "path": "embed.weight", "size": (2, 2)}),
        Sample((), {"init": "zeros", "seed": 1, "path": "fc.bias", "size": (4,)}),
        Sample((), {"init": "ones", "seed": 1, "path": "n.weight", "size": (), "dtype": float64}),
        Sample((), {"init": "fan_in", "seed": 1, "path": "w", "size": (0, 3), "fan_in": 9}),
        Sample((), {"init": "key", "seed": 1, "path": "drop.key"}),
    ),
)


def _param_value(call: RuleCall) -> TensorType:
    return TensorType(call.attrs["shape"], call.attrs["dtype"] or float32)


def _frozen_type(call: RuleCall) -> Type:
    """Return the type of the parameter, which the operator that uses it decides."""
    ty = call.solver.resolve(call.types[0])
    return ty if isinstance(ty, TypeHole) else call.tensor(0)


frozen: Final = Op(
    name="frozen",
    doc="A parameter that requires no gradient: the same elements, held constant by every "
    "derivative.",
    params=(operand("param"),),
    type_rule=_frozen_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=View(lambda torch, value: value, moving.unmoved),
    grad=NoGradient("held constant"),
    torch_name="detach",
    samples=lambda: (Sample((TensorSpec((3, 4)),)), Sample((TensorSpec((0, 4)),))),
)


param: Final = Op(
    name="param",
    doc="A hidden parameter of the given shape, as it is: `relay.param((10, 3))`.",
    params=(operand("value"),),
    type_rule=same_as_operand(),
    shape=ShapeBehaviour.IDENTITY,
    lowering=View(lambda torch, value: value, moving.unmoved),
    push=Linear(("value",)),
    grad=lambda p: (p.g,),
    hidden=(Hidden("value", HiddenKind.PARAMETER, Init.FAN_IN, _param_value),),
    hyper=(
        attribute("shape", convert=kinds.shape),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    samples=lambda: (
        Sample((TensorSpec((3, 4)),)),
        Sample((TensorSpec((0, 4)),)),
        Sample((TensorSpec(()),)),
        Sample((TensorSpec((4, 3), contiguous=False),)),
    ),
)
