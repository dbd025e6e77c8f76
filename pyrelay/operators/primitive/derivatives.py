"""Derivatives of functions of one number and of softmax, as operators of their own.

Each is its function's gradient rule, so that a lowering can compute it in one kernel; each has an
exact derivative itself. `grad` is the cotangent of the function's result.
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Expansion,
    Gradient,
    Library,
    MadeOf,
    Op,
    Param,
    Pointwise,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import axis, one_shape
from ...ir.types import Type
from ..shared.precision import widened
from ..shared.samples import derivative_samples, filled
from . import math
from .compare import less, where
from .formulas import formula

if TYPE_CHECKING:
    from ..builder import Value

Attributes = dict[str, Any]

_ROOT_HALF: Final = scalar_math.sqrt(0.5)
_ROOT_TWO_OVER_PI: Final = scalar_math.sqrt(2.0 / scalar_math.pi)
_CUBIC: Final = 0.044715


def approximation(value: Any) -> str:
    """Return the `approximate` of gelu. Raises TypeError."""
    if value not in ("none", "tanh"):
        raise TypeError(f'gelu\'s approximate is "none" or "tanh", not {value!r}')
    return value


def _derivative(
    *,
    name: str,
    doc: str,
    at: str,
    body: Callable[..., Any],
    grad: Gradient | None = None,
    attributes: tuple[Param, ...] = (),
    samples: Callable[[], Iterable[Sample]],
) -> Op:
    """Return the derivative of a function of each element, by `at`: its "input" or "output". Its
    own derivative is that of the formula in `body`, unless a cheaper or stabler one is given."""

    def code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        return formula(body, args, attrs)

    return Op(
        name=name,
        doc=doc,
        params=(operand("grad", promote=True), operand(at, promote=True), *attributes),
        promotion=Promotion.FLOAT,
        type_rule=one_shape,
        lowering=Pointwise(body),
        grad=grad or Expansion(code),
        samples=samples,
    )


relu_grad: Final = _derivative(
    name="relu_grad",
    doc="`grad` where the result of `relu` is positive, else 0.",
    at="output",
    body=lambda k, g, y: k.relu_grad(g, y),
    grad=lambda p: (relu_grad(p.g, p.args[1]), None),
    samples=lambda: (
        *derivative_samples(-2.0, 2.0, ({},)),
        Sample((TensorSpec((3,)), filled(0.0, 3)), smooth=False),
    ),
)

leaky_relu_grad: Final = _derivative(
    name="leaky_relu_grad",
    doc="`grad` where the operand of `leaky_relu` is positive, else `grad` times the slope.",
    at="input",
    body=lambda k, g, x, slope: k.leaky_relu_grad(g, x, slope),
    grad=lambda p: (leaky_relu_grad(p.g, p.args[1], **p.attrs), None),
    attributes=(attribute("negative_slope", 0.01, kinds.real),),
    samples=lambda: (
        *derivative_samples(-2.0, 2.0, ({}, {"negative_slope": 0.2})),
        Sample((TensorSpec((3,)), filled(0.0, 3)), smooth=False),
    ),
)


def _elu_grad_grad(p: Pullback) -> Sequence[Value | None]:
    g, x = p.args
    bent = elu_grad(p.g * g, x, **p.attrs)
    return elu_grad(p.g, x, **p.attrs), where(less(x, 0.0), bent, 0.0)


elu_grad: Final = _derivative(
    name="elu_grad",
    doc="`grad` times the derivative of `elu`.",
    at="input",
    body=lambda k, g, x, alpha: k.elu_grad(g, x, alpha),
    grad=_elu_grad_grad,
    attributes=(attribute("alpha", 1.0, kinds.real),),
    samples=lambda: (
        *derivative_samples(-2.0, 2.0, ({}, {"alpha": 0.5})),
        Sample((TensorSpec((2,)), filled(1000.0, 2))),
        Sample((TensorSpec((3,)), filled(0.0, 3)), smooth=False),
    ),
)


def _gelu_curvature(x: Value, approximate: str) -> Value:
    """Return the second derivative of gelu."""
    square = x * x
    if approximate == "none":
        return math.exp(-0.5 * square) * (0.5 * _ROOT_TWO_OVER_PI) * (2.0 - square)
    bent = math.tanh(_ROOT_TWO_OVER_PI * (x + _CUBIC * (square * x)))
    slope = _ROOT_TWO_OVER_PI * (1.0 + 3.0 * _CUBIC * square)
    turn = (6.0 * _CUBIC * _ROOT_TWO_OVER_PI) * x - 2.0 * bent * (slope * slope)
    return (1.0 - bent * bent) * (slope + 0.5 * x * turn)


gelu_grad: Final = _derivative(
    name="gelu_grad",
    doc="`grad` times the derivative of `gelu`.",
    at="input",
    body=lambda k, g, x, approximate: k.gelu_grad(g, x, approximate),
    grad=lambda p: (
        gelu_grad(p.g, p.args[1], **p.attrs),
        p.g * p.args[0] * _gelu_curvature(p.args[1], p.attrs["approximate"]),
    ),
    attributes=(attribute("approximate", "none", approximation),),
    samples=lambda: derivative_samples(-2.0, 2.0, ({}, {"approximate": "tanh"})),
)


silu_grad: Final = _derivative(
    name="silu_grad",
    doc="`grad` times the derivative of `silu`.",
    at="input",
    body=lambda k, g, x: k.silu_grad(g, x),
    samples=lambda: derivative_samples(-2.0, 2.0, ({},)),
)


softplus_grad: Final = _derivative(
    name="softplus_grad",
    doc="`grad` times the derivative of `softplus`.",
    at="input",
    body=lambda k, g, x, beta, threshold: k.softplus_grad(g, x, beta, threshold),
    attributes=(attribute("beta", 1.0, kinds.real), attribute("threshold", 20.0, kinds.real)),
    samples=lambda: (
        *derivative_samples(-2.0, 2.0, ({}, {"beta": 2.5}, {"threshold": 0.25})),
        Sample((TensorSpec((4,)), TensorSpec((4,), low=15.0, high=200.0))),
    ),
)


def _along(call: RuleCall) -> Type:
    ty = one_shape(call)
    axis(call, call.attrs["dim"], call.tensor(0).rank)
    return ty


def _softmax_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4), low=0.0, high=1.0)), {"dim": -1})
    yield Sample((TensorSpec((2, 3, 4)), TensorSpec((2, 3, 4), low=-1.0)), {"dim": 1})
    yield Sample((TensorSpec((5,)), TensorSpec((5,))), {"dim": 0})
    yield Sample((TensorSpec((0, 3)), TensorSpec((0, 3))), {"dim": 1})
    strided = TensorSpec((4, 3), contiguous=False)
    yield Sample((strided, TensorSpec((4, 3))), {"dim": 1})
    yield Sample((TensorSpec((4, 3)), strided), {"dim": 0})


def _of_softmax(
    *,
    name: str,
    doc: str,
    body: Callable[..., Any],
    formula: Callable[[Value, Value, tuple[int, ...]], Value],
    grad: Gradient,
) -> Op:
    def code(args: tuple[Value, ...], attrs: Attributes) -> Value:
        g, y = map(widened, args)
        return formula(g, y, (attrs["dim"],)).cast(args[0].dtype)

    return Op(
        name=name,
        doc=doc,
        params=(
            operand("grad", promote=True),
            operand("output", promote=True),
            attribute("dim", convert=kinds.axis),
        ),
        promotion=Promotion.FLOAT,
        type_rule=_along,
        shape=ShapeBehaviour.IDENTITY,
        lowering=Library(body, is_fresh=True, fused=MadeOf(code)),
        grad=grad,
        samples=_softmax_samples,
    )


def _softmax_grad_grad(p: Pullback) -> Sequence[Value | None]:
    (g, y), dim = p.args, p.attrs["dim"]
    by_y = p.g * (g - (g * y).sum((dim,), keepdim=True))
    return softmax_grad(p.g, y, dim=dim), by_y - g * (p.g * y).sum((dim,), keepdim=True)


softmax_grad: Final = _of_softmax(
    name="softmax_grad",
    doc="The cotangent of the operand of `softmax` from its result: "
    "`output * (grad - sum(grad * output))`.",
    body=lambda torch, g, y, dim: torch._softmax_backward_data(  # noqa: SLF001
        g, y, dim, y.dtype
    ),
    formula=lambda g, y, dims: y * (g - (g * y).sum(dims, keepdim=True)),
    grad=_softmax_grad_grad,
)


def _log_softmax_grad_grad(p: Pullback) -> Sequence[Value | None]:
    (g, y), dim = p.args, p.attrs["dim"]
    chances = math.exp(y)
    weighted = p.g * chances
    by_g = p.g - weighted.sum((dim,), keepdim=True)
    return by_g, -(weighted * g.sum((dim,), keepdim=True))


def _log_softmax_formula(g: Value, y: Value, dims: tuple[int, ...]) -> Value:
    return g - math.exp(y) * g.sum(dims, keepdim=True)


log_softmax_grad: Final = _of_softmax(
    name="log_softmax_grad",
    doc="The cotangent of the operand of `log_softmax` from its result: "
    "`grad - exp(output) * sum(grad)`.",
    body=lambda torch, g, y, dim: torch._log_softmax_backward_data(  # noqa: SLF001
        g, y, dim, y.dtype
    ),
    formula=_log_softmax_formula,
    grad=_log_softmax_grad_grad,
)
