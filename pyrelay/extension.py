"""Operators of a user's own: `@relay.operator` gives the same declaration the library uses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from .ir.op import (
    MODE,
    REQUIRED,
    Effect,
    Elementwise,
    Expansion,
    Gradient,
    Library,
    MadeOf,
    NoGradient,
    Op,
    Param,
    Role,
    Sample,
    ShapeBehaviour,
    TypeRule,
)
from .operators.declare import type_of_body

if TYPE_CHECKING:
    from .ir.declaration.elements import Elements, Place
    from .ir.declaration.lowering import Fused

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def declare(
    function: Callable[..., Any],
    *,
    type_rule: TypeRule | None = None,
    grad: Gradient | None,
    samples: Iterable[Sample],
    shape: ShapeBehaviour = ShapeBehaviour.FIXED,
    effect: Effect = Effect.NONE,
    fused: Callable[..., Any] | Fused | None = None,
) -> Op:
    """Return the operator that a function of torch tensors is; `relay.operator` documents the
    arguments. Raises TypeError for `*args`, `**kwargs`, and without a type rule."""
    params = tuple(_param(p) for p in inspect.signature(function).parameters.values())
    attributes = [p.name for p in params if p.role is Role.ATTRIBUTE]
    count = len(params) - len(attributes)

    @wraps(function)
    def body(_: Any, *values: Any) -> Any:
        return function(*values[:count], **dict(zip(attributes, values[count:], strict=True)))

    def element(k: Elements, place: Place, *values: Any) -> Any:
        assert callable(fused)
        named = dict(zip(attributes, values[count:], strict=True))
        return fused(k, place, *values[:count], **named)

    meaning = Elementwise(element) if callable(fused) else fused
    name = function.__name__
    derivative = NoGradient("declared without one", is_zero=False) if grad is None else grad
    if isinstance(meaning, MadeOf):
        type_rule = type_rule or type_of_body(meaning.body)
        derivative = grad or Expansion(meaning.body)
    if type_rule is None:
        raise TypeError(f"`{name}` needs a type rule, or `fused=MadeOf(...)`, which implies one")
    return Op(
        name=name,
        doc=inspect.getdoc(function) or f"The operator {name}.",
        params=params,
        type_rule=type_rule,
        effect=effect,
        shape=shape,
        lowering=Library(body, fused=meaning),
        grad=derivative,
        torch_name=None,
        samples=lambda: samples,
    )


def _param(parameter: inspect.Parameter) -> Param:
    default = REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default
    if parameter.kind in _POSITIONAL:
        return Param(parameter.name, Role.OPERAND, default)
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        is_mode = parameter.name == "training" and default is REQUIRED
        return Param(parameter.name, Role.ATTRIBUTE, MODE if is_mode else default)
    raise TypeError(f"an operator has named parameters only, not *{parameter.name}")
