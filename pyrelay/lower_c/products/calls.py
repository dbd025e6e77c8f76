"""Calls of convolutions, and of their gradients, as C kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import Call, Expr, Var, is_unit, type_of
from ...ir.op import Op
from ...ir.types import DType, TensorType, TupleType, Type, float32, float64
from ...kernels.calling import Argument, Form, Layout, NoKernel, Read, Size, Written
from ...kernels.groups import Group
from ...operators.composite.table_rows import first_places
from ...operators.primitive.conv import (
    conv1d,
    conv2d,
    conv_backward,
    conv_input_grad,
    conv_weight_grad,
)
from ..math import Target, element_of
from .convolutions import Convolution, Pair
from .places import places_text

_FORWARD: Final = (conv1d, conv2d)
_Shape: TypeAlias = tuple[Dim, ...]


@final
@dataclass(frozen=True, slots=True)
class CallText:
    """The C of a call: a function `name`, declared by `head`, whose parameters after the run are
    `arguments`."""

    name: str
    head: str
    text: str
    arguments: tuple[Argument, ...]


def has_code(call: Call) -> bool:
    """Return whether the call of an operator has C of its own: `first_places`, or a convolution
    over one or two dims of float32 or float64, whose sizes are known but for the number of
    images."""
    return call.callee is first_places or _convolution(call) is not None


def lower_call(group: Group, layout: Layout, target: Target, name: str = "") -> CallText:
    """Return the C of a call. Raises NoKernel."""
    call = group.call
    assert call is not None
    assert isinstance(call.callee, Op)
    if any(form is not Form.CONTIGUOUS for form in layout.operands):
        raise NoKernel("an operand does not lie row by row")
    if call.callee is first_places:
        return CallText(*places_text(name or call.callee.name, call))
    convolution = _convolution(call)
    if convolution is None:
        raise NoKernel(f"`{call.callee.name}` has no C form")
    params = {p: i for i, p in enumerate(group.function.params)}
    operands = [_position(a, params) for a in call.args if not is_unit(a)]
    wanted = _wanted(call)
    texts = _parts(convolution, call, wanted, name or call.callee.name, target)
    return _joined(name or call.callee.name, texts, operands, call, convolution.element.c)


def _position(operand: Expr, params: dict[Var, int]) -> int:
    if not isinstance(operand, Var) or operand not in params:
        raise NoKernel("an operand is a number")
    return params[operand]


_Part: TypeAlias = tuple[str, str, tuple[int, ...]]
"""The name and the text of a C function, and the operands of the call that it takes."""


def _parts(
    of: Convolution, call: Call, wanted: Sequence[bool], name: str, target: Target
) -> list[_Part]:
    """Return the functions that make the results of a call, in their order."""
    if call.callee in _FORWARD:
        has_bias = not is_unit(call.args[2])
        inner = f"{name}_forward"
        taken = (0, 1, 2) if has_bias else (0, 1)
        return [(inner, of.forward(inner, target, has_bias=has_bias), taken)]
    is_backward = call.callee is conv_backward
    found: list[_Part] = []
    if wanted[0]:
        inner = f"{name}_image"
        taken = (0, 2) if is_backward else (0, 1)
        found.append((inner, of.input_gradient(inner, target), taken))
    if wanted[1]:
        inner = f"{name}_weight"
        found.append((inner, of.weight_gradient(inner, target), (0, 1)))
    if wanted[2]:
        inner = f"{name}_bias"
        found.append((inner, of.bias_gradient(inner, target), (0,)))
    return found


def _joined(
    name: str, parts: Sequence[_Part], operands: Sequence[int], call: Call, element: str
) -> CallText:
    """Return the function that runs some functions one after another."""
    ty = type_of(call)
    results = ty.fields if isinstance(ty, TupleType) else (ty,)
    dtype = _tensor(type_of(call.args[0])).dtype
    assert isinstance(dtype, DType)
    reads = [f"operand_{i}" for i in range(len(operands))]
    made = [f"result_{i}" for i in range(len(results))]
    parameters = (
        *("relay_run *run", *(f"const {element} *{r}" for r in reads)),
        *(*(f"{element} *{m}" for m in made), "int64_t count"),
    )
    head = f"void {name}({', '.join(parameters)})"
    lines = [f"KERNEL {head} {{"]
    for (inner, _, taken), result in zip(parts, made, strict=True):
        given = ", ".join(reads[i] for i in taken)
        lines.append(f"    {inner}(run, {given}, {result}, count);")
    text = "\n".join((*(text for _, text, _ in parts), *lines, "}", ""))
    arguments: list[Argument] = [Read(position, dtype) for position in operands]
    arguments += [Written(i, dtype, _tensor(r).shape) for i, r in enumerate(results)]
    arguments.append(Size(_tensor(type_of(call.args[0])).shape[0]))
    return CallText(name, head, text, tuple(arguments))


def _wanted(call: Call) -> tuple[bool, ...]:
    """Return which gradients the call of one makes."""
    if call.callee is conv_backward:
        return tuple(call.attrs["wanted"])
    return call.callee is conv_input_grad, call.callee is conv_weight_grad, False


def _tensor(ty: Type) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty


def _convolution(call: Call) -> Convolution | None:
    """Return the convolution that an operator computes, or of which it computes gradients."""
    types = [type_of(a) for a in call.args]
    shapes = [t.shape for t in types if isinstance(t, TensorType)]
    match call.callee:
        case op if op in _FORWARD:
            image, weight = shapes[:2]
        case op if op is conv_backward:
            _, image, weight = shapes
        case op if op is conv_input_grad:
            image, weight = call.attrs["input_size"], shapes[1]
        case op if op is conv_weight_grad:
            image, weight = shapes[1], call.attrs["weight_size"]
        case _:
            return None
    dtypes = {t.dtype for t in types if isinstance(t, TensorType)}
    if len(dtypes) != 1 or not dtypes <= {float32, float64}:
        return None
    (dtype,) = dtypes
    return None if len(image) != len(weight) else _of(tuple(image), tuple(weight), dtype, call)


def _of(image: _Shape, weight: _Shape, dtype: Any, call: Call) -> Convolution | None:
    """Return a convolution of these shapes; None where one is not known, or not of images."""
    sizes = [_known(d) for d in (*image[1:], *weight)]
    if len(image) not in (3, 4) or any(s is None for s in sizes):
        return None
    channels, *rest = (s for s in sizes if s is not None)
    spatial = len(image) - 2
    space, (results, sources, *kernel) = rest[:spatial], rest[spatial:]
    stride, dilation = (_each(call.attrs[k], spatial) for k in ("stride", "dilation"))
    padding = _padding(call.attrs["padding"], kernel, dilation)
    groups = call.attrs["groups"]
    if padding is None or 0 in (channels, results, sources, *kernel, *space):
        return None
    found = Convolution(
        *(element_of(dtype), groups, sources, results // groups),
        *(_pair(space, 1), _pair(kernel, 1), _pair(stride, 1)),
        *(_pair(padding, 0), _pair(dilation, 1)),
    )
    return found if min(found.output) > 0 else None


def _known(size: Any) -> int | None:
    return Dim.of(size).constant if isinstance(size, int) else size.constant


def _padding(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[int] | None:
    """Return the padding on each side of each dim; None where the two sides differ."""
    match padding:
        case "valid":
            return [0] * len(kernel)
        case "same":
            both = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
            return None if any(b % 2 for b in both) else [b // 2 for b in both]
        case _:
            return _each(padding, len(kernel))


def _each(sizes: Sequence[int], count: int) -> list[int]:
    """Return a size for each dim; one may stand for all."""
    return list(sizes) * (count if len(sizes) == 1 else 1)


def _pair(sizes: Sequence[int], missing: int) -> Pair:
    """Return the sizes of two dims; rows are images of height 1."""
    first, last = sizes if len(sizes) == 2 else (missing, sizes[0])
    return first, last
