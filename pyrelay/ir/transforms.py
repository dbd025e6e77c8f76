"""The transforms that a program can mention, and the options that each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, Final, TypeAlias, final


class Rule(Enum):
    """The program transforms that a program can mention."""

    GRAD = "grad"
    VALUE_AND_GRAD = "value_and_grad"
    VJP = "vjp"
    JVP = "jvp"
    CUSTOM_VJP = "custom_vjp"
    CHECKPOINT = "checkpoint"
    HELD = "held"

    @property
    def is_annotation(self) -> bool:
        """Whether what is made is the function itself, and the rule only says how the transforms
        around it go through."""
        return self in RULE_COUNTS


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

    def keeping(self, kept: Sequence[int]) -> Differentiation:
        """Return the options for a function of some of the parameters, by their indices, in order;
        the others must not be among those to differentiate in."""
        return replace(self, wrt=tuple(map(kept.index, self.indices)))


Options: TypeAlias = Differentiation

OPTIONS: Final[Mapping[Rule, type[Options]]] = {
    Rule.GRAD: Differentiation,
    Rule.VALUE_AND_GRAD: Differentiation,
    Rule.VJP: Differentiation,
    Rule.JVP: Differentiation,
    Rule.CUSTOM_VJP: Differentiation,
    Rule.CHECKPOINT: Differentiation,
    Rule.HELD: Differentiation,
}
"""The options of each transform. In text they are attributes, by the names of the fields."""

RULE_COUNTS: Final[Mapping[Rule, int]] = {
    Rule.CUSTOM_VJP: 2,
    Rule.CHECKPOINT: 0,
    Rule.HELD: 0,
}
"""How many functions an annotation takes behind the one that it is of."""
