"""The transforms that a program can mention, and the options that each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias, final

from ..dataclass import dataclass


class Rule(Enum):
    """The program transforms that a program can mention."""

    GRAD = "grad"
    VALUE_AND_GRAD = "value_and_grad"
    VJP = "vjp"
    JVP = "jvp"
    VMAP = "vmap"
    HVP = "hvp"
    HESSIAN = "hessian"
    JACFWD = "jacfwd"
    JACREV = "jacrev"
    LINEARIZE = "linearize"
    CUSTOM_VJP = "custom_vjp"
    CUSTOM_JVP = "custom_jvp"
    CHECKPOINT = "checkpoint"
    AUTOCAST = "autocast"
    STOP_GRADIENT = "stop_gradient"

    @property
    def takes_tangents(self) -> bool:
        """Whether the derived function takes two tuples, of arguments and of tangents."""
        return self in (Rule.JVP, Rule.HVP)

    @property
    def is_annotation(self) -> bool:
        """Whether the derived function is the function itself, and the rule only directs the
        transforms around it."""
        return self in RULE_COUNTS

    @property
    def keeps_type(self) -> bool:
        """Whether the derived function has the type of the function."""
        return self.is_annotation or self is Rule.AUTOCAST


@final
@dataclass(frozen=True, slots=True)
class Differentiation:
    """In which parameters of a function a derivative is taken.

    `wrt` has their indices; None stands for all that hold floats, which inference fills in.
    `single` says that the derivative in one parameter is bare, where it is otherwise a tuple. With
    `has_aux` the function returns `(loss, aux)`, and the loss is differentiated.
    """

    form: ClassVar = "wrt=(0,), single=True, has_aux=False"
    """How the options are written in text."""
    wrt: tuple[int, ...] | None = None
    single: bool = True
    has_aux: bool = False

    @property
    def indices(self) -> tuple[int, ...]:
        """The parameters, once inference has found them."""
        assert self.wrt is not None, "inference says which parameters"
        return self.wrt

    @property
    def indices_named(self) -> tuple[int, ...]:
        """The parameters that the options name."""
        return self.wrt or ()

    def keeping(self, kept: Sequence[int]) -> Differentiation:
        """Return the options for a function of some of the parameters, by their indices, in order;
        the others must not be among those to differentiate in."""
        if self.wrt is None:
            return self
        return replace(self, wrt=tuple(map(kept.index, self.indices)))


Axes: TypeAlias = int | tuple[Any, ...] | None
"""Where the batch dim of a value is: a dim of its tensors, counted from either end; None for a
value that is the same for every call; a tuple with the axes of each field of a tuple."""


@final
@dataclass(frozen=True, slots=True)
class Batching:
    """How a function is mapped over a dim of its arguments.

    `in_axes` has the axes of the parameters, one for all of them or a tuple of one each; `out_axes`
    those of the result. A parameter that holds no tensors, such as a function, is never batched.
    """

    form: ClassVar = "in_axes=0, out_axes=0"
    """How the options are written in text."""
    in_axes: Axes = 0
    out_axes: Axes = 0

    @property
    def indices(self) -> tuple[int, ...]:
        """The parameters that must not be left out: none."""
        return ()

    @property
    def indices_named(self) -> tuple[int, ...]:
        """The parameters that the options name: none."""
        return ()

    def fits(self, count: int) -> bool:
        """Return whether there are axes for `count` parameters."""
        return not isinstance(self.in_axes, tuple) or len(self.in_axes) == count

    def axes(self, count: int) -> tuple[Axes, ...]:
        """Return the axes of each of `count` parameters. Raises ValueError where there are others
        than parameters."""
        if not isinstance(self.in_axes, tuple):
            return (self.in_axes,) * count
        if not self.fits(count):
            raise ValueError(f"`in_axes` has {len(self.in_axes)} axes for {count} parameters")
        return self.in_axes

    def keeping(self, kept: Sequence[int]) -> Batching:
        """Return the options for a function of some of the parameters, by their indices."""
        if not isinstance(self.in_axes, tuple):
            return self
        return replace(self, in_axes=tuple(self.in_axes[i] for i in kept))


Options: TypeAlias = Differentiation | Batching

OPTIONS: Final[Mapping[Rule, type[Options]]] = {
    Rule.GRAD: Differentiation,
    Rule.VALUE_AND_GRAD: Differentiation,
    Rule.VJP: Differentiation,
    Rule.JVP: Differentiation,
    Rule.HVP: Differentiation,
    Rule.HESSIAN: Differentiation,
    Rule.JACFWD: Differentiation,
    Rule.JACREV: Differentiation,
    Rule.LINEARIZE: Differentiation,
    Rule.CUSTOM_VJP: Differentiation,
    Rule.CUSTOM_JVP: Differentiation,
    Rule.CHECKPOINT: Differentiation,
    Rule.AUTOCAST: Differentiation,
    Rule.STOP_GRADIENT: Differentiation,
    Rule.VMAP: Batching,
}
"""The options of each transform. In text they are attributes, by the names of the fields."""

RULE_COUNTS: Final[Mapping[Rule, int]] = {
    Rule.CUSTOM_VJP: 2,
    Rule.CUSTOM_JVP: 1,
    Rule.CHECKPOINT: 0,
    Rule.STOP_GRADIENT: 0,
}
"""How many functions an annotation takes behind the one that it is of."""

NARROW: Final = ("bfloat16", "float16")
"""The policies of `autocast`, dtypes in which products are computed; the first is the default."""


def narrow_name(policy: tuple[str, ...]) -> str:
    """Return the name of the dtype of an `autocast`."""
    return policy[0] if policy else NARROW[0]


def called(name: str) -> str:
    """Return how a user calls a function: the transform `grad.f` is `relay.grad(f)`."""
    *rules, base = name.split(".")
    if not all(rule in _RULES for rule in rules):
        return name
    for rule in reversed(rules):
        base = f"relay.{rule}({base})"
    return base


_RULES: Final = frozenset(rule.value for rule in Rule)
