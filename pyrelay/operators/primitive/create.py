"""Tensors made of nothing but a size: constants, ranges, identities, triangles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ...ir.bounds import maximum
from ...ir.declaration import attribute_kinds as kinds
from ...ir.declaration.elements import Elements, Place, number_element
from ...ir.dims import ONE, Dim
from ...ir.op import (
    Elementwise,
    Layouts,
    Library,
    MadeOf,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import (
    AnyDType,
    DType,
    TensorType,
    Type,
    bool_,
    float32,
    float64,
    int64,
    is_float,
    show,
)
from ..shared.operands import on_tensor
from .compare import greater_equal, less_equal, where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..builder import Value

_CONSTANT: Final = NoGradient("the result does not depend on the elements of any operand")


def _sized(call: RuleCall, dtype: AnyDType) -> Type:
    for dim in call.attrs["size"]:
        value = call.solver.resolve_dim(dim).constant
        if value is not None and value < 0:
            call.clash(f"`{call.op.name}` takes no negative size: {value}")
    return TensorType(call.attrs["size"], dtype)


def _number_dtype(value: Any) -> AnyDType:
    if isinstance(value, bool):
        return bool_
    return float32 if isinstance(value, float) else int64


def _full(torch: Any, device: Any, size: tuple[int, ...], value: Any, dtype: Any) -> Any:
    if dtype is None and not isinstance(value, bool | int):
        dtype = torch.float32
    return torch.full(size, value, dtype=dtype, device=device)


full: Final = Op(
    name="full",
    doc="A tensor of one number.",
    params=(
        attribute("size", convert=kinds.shape),
        attribute("fill_value", convert=kinds.scalar),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    type_rule=lambda call: _sized(
        call, call.attrs["dtype"] or _number_dtype(call.attrs["fill_value"])
    ),
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(
        _full,
        is_fresh=True,
        fused=Elementwise(lambda k, place, size, value, dtype: number_element(k, value, dtype)),
    ),
    grad=_CONSTANT,
    samples=lambda: (
        Sample((), {"size": (2, 3), "fill_value": 1.5}),
        Sample((), {"size": (), "fill_value": 7}),
        Sample((), {"size": (0, 2), "fill_value": True}),
        Sample((), {"size": (3,), "fill_value": 2, "dtype": float32}),
    ),
)


_NUMBERS: Final = {"zeros": 0, "ones": 1}


def _filled(name: str) -> Op:
    """Return the operator for a tensor of one number, which torch's function `name` fills in."""
    return Op(
        name=name,
        doc=f"A tensor of {name}, of float32 unless `dtype` says otherwise.",
        params=(
            attribute("size", convert=kinds.shape),
            attribute("dtype", None, kinds.optional(kinds.dtype)),
        ),
        type_rule=lambda call: _sized(call, call.attrs["dtype"] or float32),
        shape=ShapeBehaviour.FACTORY,
        lowering=Library(
            lambda torch, device, size, dtype: getattr(torch, name)(
                size, dtype=dtype or torch.float32, device=device
            ),
            is_fresh=True,
            fused=Elementwise(lambda k, place, size, dtype: k.const(_NUMBERS[name])),
        ),
        grad=_CONSTANT,
        samples=lambda: (
            Sample((), {"size": (2, 3)}),
            Sample((), {"size": ()}),
            Sample((), {"size": (0, 2), "dtype": int64}),
            Sample((), {"size": (3,), "dtype": float64}),
        ),
    )


zeros: Final = _filled("zeros")
ones: Final = _filled("ones")


def _like(call: RuleCall) -> Type:
    source = call.tensor(0)
    return TensorType(source.shape, call.attrs["dtype"] or source.dtype)


def _full_as(x: Value, fill_value: Any, dtype: DType | None) -> Value:
    attrs = {"size": x.shape, "fill_value": fill_value, "dtype": dtype or x.dtype}
    return x.builder.call(full, (), attrs)


def _filled_like(name: str) -> Op:
    """Return the operator for a tensor of one number in the shape of another."""
    return Op(
        name=f"{name}_like",
        doc=f"{name.capitalize()} in the shape of a tensor, and in its dtype unless `dtype` says "
        "otherwise.",
        params=(operand("input"), attribute("dtype", None, kinds.optional(kinds.dtype))),
        type_rule=_like,
        shape=ShapeBehaviour.IDENTITY,
        layouts=Layouts.IMAGES,
        lowering=Library(
            on_tensor(lambda torch, x, dtype: getattr(torch, f"{name}_like")(x, dtype=dtype)),
            is_fresh=True,
            fused=MadeOf(lambda args, attrs: _full_as(args[0], _NUMBERS[name], attrs["dtype"])),
        ),
        grad=_CONSTANT,
        samples=lambda: (
            Sample((TensorSpec((2, 3)),)),
            Sample((TensorSpec(()),), {"dtype": int64}),
            Sample((TensorSpec((0, 3)),)),
            Sample((TensorSpec((4, 3), contiguous=False),)),
        ),
    )


zeros_like: Final = _filled_like("zeros")
ones_like: Final = _filled_like("ones")


full_like: Final = Op(
    name="full_like",
    doc="One number in the shape of a tensor, and in its dtype unless `dtype` says otherwise.",
    params=(
        operand("input"),
        attribute("fill_value", convert=kinds.scalar),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    type_rule=_like,
    shape=ShapeBehaviour.IDENTITY,
    layouts=Layouts.IMAGES,
    lowering=Library(
        on_tensor(lambda torch, x, value, dtype: torch.full_like(x, value, dtype=dtype)),
        fused=MadeOf(lambda args, attrs: _full_as(args[0], **attrs)),
    ),
    grad=_CONSTANT,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),), {"fill_value": 2.5}),
        Sample((TensorSpec(()),), {"fill_value": 2, "dtype": int64}),
        Sample((TensorSpec((0, 3)),), {"fill_value": 1.0}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"fill_value": 3}),
    ),
)


def _range_bounds(start: Any, end: Any) -> tuple[Any, Any]:
    """Read `arange(end)` as `arange(0, end)`."""
    return (0, start) if end is None else (start, end)


def _range_length(call: RuleCall) -> Dim:
    start, end = _range_bounds(call.attrs["start"], call.attrs["end"])
    step = call.attrs["step"]
    if step == 0:
        call.clash("`arange` takes no step of 0")
    numbers = [v for v in (start, end, step) if not isinstance(v, Dim)]
    if not all(map(math.isfinite, numbers)):
        call.clash("`arange` takes finite numbers")
    if len(numbers) == 3:
        return Dim.of(max(0, math.ceil((end - start) / step)))
    if not isinstance(step, int) or any(isinstance(v, float) for v in numbers):
        call.clash(
            "`arange` with floats takes numbers, not sizes",
            help="make it of integers and scale it: relay.arange(n) * 0.5",
        )
    start, end = call.solver.resolve_dim(Dim.of(start)), call.solver.resolve_dim(Dim.of(end))
    distance = end - start if step > 0 else start - end
    # A range between sizes is taken to run in the direction of its step.
    return (distance + (abs(step) - 1)) // abs(step)


def _arange_type(call: RuleCall) -> Type:
    bounds = (*_range_bounds(call.attrs["start"], call.attrs["end"]), call.attrs["step"])
    default = float32 if any(isinstance(v, float) for v in bounds) else int64
    return TensorType((_range_length(call),), call.attrs["dtype"] or default)


def _arange(torch: Any, device: Any, start: Any, end: Any, step: Any, dtype: Any) -> Any:
    start, end = _range_bounds(start, end)
    if (end - start) * step < 0:
        end = start
    if dtype is None and isinstance(start + end + step, float):
        dtype = torch.float32
    return torch.arange(start, end, step, dtype=dtype, device=device)


def _arange_element(
    k: Elements, place: Place, start: Any, end: Any, step: Any, dtype: DType | None
) -> Any:
    first, last = _range_bounds(start, end)
    (i,) = place.index
    if not any(isinstance(v, float) for v in (first, last, step)):
        whole = k.number(Dim.of(first) + i * step)
        return whole if dtype is None else k.cast(whole, dtype)
    far = k.mul(k.cast(k.number(i), dtype or float32), k.const(step))
    return k.add(far, k.const(first))


arange: Final = Op(
    name="arange",
    doc="The numbers from `start` up to, not including, `end`; `arange(end)` starts at 0.",
    params=(
        attribute("start", 0, kinds.number),
        attribute("end", None, kinds.optional(kinds.number)),
        attribute("step", 1, kinds.number),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    type_rule=_arange_type,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(_arange, is_fresh=True, fused=Elementwise(_arange_element)),
    grad=_CONSTANT,
    torch_name=None,
    samples=lambda: (
        Sample((), {"end": 5}),
        Sample((), {"start": 4}),
        Sample((), {"start": 2, "end": 9, "step": 3}),
        Sample((), {"start": 5, "end": 0, "step": -2}),
        Sample((), {"start": 3, "end": 3}),
        Sample((), {"start": 0.0, "end": 1.0, "step": 0.3}),
        Sample((), {"end": 4, "dtype": float32}),
    ),
)


def _linspace_type(call: RuleCall) -> Type:
    return TensorType((Dim.of(call.attrs["steps"]),), call.attrs["dtype"] or float32)


def _linspace_element(
    k: Elements, place: Place, start: Any, end: Any, steps: Any, dtype: DType | None
) -> Any:
    # Counted from the nearer end, as in torch, so that both ends are exact.
    (i,) = place.index
    wide = dtype if dtype is not None and is_float(dtype) and dtype.bits > 16 else float32
    last = Dim.of(steps) - 1
    low, high = (k.cast(number_element(k, v, wide), wide) for v in (start, end))
    gaps = k.cast(k.number(maximum(last, ONE)), wide)
    step = k.div(k.sub(high, low), gaps)
    near = k.add(low, k.mul(step, k.cast(k.number(i), wide)))
    far = k.sub(high, k.mul(step, k.cast(k.number(last - i), wide)))
    found = k.where(k.lt(k.number(2 * i), k.number(Dim.of(steps))), near, far)
    return found if dtype in (None, wide) else k.cast(found, dtype)


linspace: Final = Op(
    name="linspace",
    doc="Numbers at equal distances from `start` to `end`, both included.",
    params=(
        attribute("start", convert=kinds.number),
        attribute("end", convert=kinds.number),
        attribute("steps", convert=kinds.size),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    type_rule=_linspace_type,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(
        lambda torch, device, start, end, steps, dtype: torch.linspace(
            start, end, steps, dtype=dtype or torch.float32, device=device
        ),
        fused=Elementwise(_linspace_element),
    ),
    grad=_CONSTANT,
    samples=lambda: (
        Sample((), {"start": 0.0, "end": 1.0, "steps": 5}),
        Sample((), {"start": -1, "end": 1, "steps": 1}),
        Sample((), {"start": 0, "end": 1, "steps": 0}),
        Sample((), {"start": -2, "end": 1.5, "steps": 6, "dtype": float64}),
    ),
)


def _eye_type(call: RuleCall) -> Type:
    rows, columns = call.attrs["n"], call.attrs["m"]
    columns = rows if columns is None else columns
    return TensorType((Dim.of(rows), Dim.of(columns)), call.attrs["dtype"] or float32)


def _eye(torch: Any, device: Any, n: int, m: int | None, dtype: Any) -> Any:
    dtype = dtype or torch.float32
    return torch.eye(n, n if m is None else m, dtype=dtype, device=device)


def _eye_element(k: Elements, place: Place, n: Any, m: Any, dtype: DType | None) -> Any:
    row, column = place.index
    return k.cast(k.eq(k.number(row), k.number(column)), dtype or float32)


eye: Final = Op(
    name="eye",
    doc="Ones on the diagonal of a matrix, zeros elsewhere.",
    params=(
        attribute("n", convert=kinds.size),
        attribute("m", None, kinds.optional(kinds.size)),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    type_rule=_eye_type,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(_eye, is_fresh=True, fused=Elementwise(_eye_element)),
    grad=_CONSTANT,
    samples=lambda: (
        Sample((), {"n": 3}),
        Sample((), {"n": 2, "m": 4}),
        Sample((), {"n": 0}),
        Sample((), {"n": 2, "dtype": int64}),
        Sample((), {"n": 3, "m": 2, "dtype": float64}),
    ),
)


def _matrix(call: RuleCall) -> Type:
    source = call.tensor(0)
    if source.rank < 2:
        call.clash(f"`{call.op.name}` takes a matrix or a stack of matrices, not {show(source)}", 0)
    return source


def _triangle(name: str, doc: str, keeps: Op, above: int) -> Op:
    """Return the operator that keeps the elements of matrices whose distance above the diagonal
    `keeps` less, or more; torch's function `name`."""

    def code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        (x,) = args
        rows, columns = (x.builder.call(arange, (), {"end": n}) for n in x.shape[-2:])
        distance = columns - rows.unsqueeze(-1)
        return where(keeps(distance, x.builder.size(attrs["diagonal"])), x, 0)

    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), attribute("diagonal", 0, kinds.size)),
        type_rule=_matrix,
        shape=ShapeBehaviour.BATCHED,
        lowering=Library(
            lambda torch, x, diagonal: getattr(torch, name)(x, diagonal), fused=MadeOf(code)
        ),
        grad=lambda p: ((tril if above > 0 else triu)(p.g, diagonal=p.attrs["diagonal"]),),
        samples=lambda: (
            Sample((TensorSpec((3, 4)),)),
            Sample((TensorSpec((2, 3, 3)),), {"diagonal": -above}),
            Sample((TensorSpec((0, 3)),), {"diagonal": above}),
            Sample((TensorSpec((4, 3), contiguous=False),)),
        ),
    )


tril: Final[Op] = _triangle(
    "tril", "The lower triangle of a matrix, zeros above it.", less_equal, 1
)
triu: Final[Op] = _triangle(
    "triu", "The upper triangle of a matrix, zeros below it.", greater_equal, -1
)
