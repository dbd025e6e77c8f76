"""The derivative of an operator, in reverse and in forward mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...dataclass import dataclass

if TYPE_CHECKING:
    from ...operators.builder import Value


@final
@dataclass(frozen=True, slots=True)
class NoGradient:
    """A statement that the derivative is zero or meaningless, and why.

    `is_zero` is False where there is a derivative that nobody has stated: then a gradient that
    needs it is refused.
    """

    why: str
    is_zero: bool = True


@final
@dataclass(frozen=True, slots=True)
class Pullback:
    """The arguments of a gradient rule: the cotangent `g` of the result, the result `out`, the
    operands, and the attributes. Whatever of `out` and `args` the rule uses is saved.

    `wanted` marks the operands that need a cotangent. A rule whose kernel computes several at once
    asks for these alone; other rules may return more.
    """

    g: Value
    out: Value
    args: tuple[Value, ...]
    attrs: Mapping[str, Any]
    wanted: tuple[bool, ...]


Gradient: TypeAlias = "Callable[[Pullback], Sequence[Value | None]]"
"""Return one cotangent for each operand; None where there is none. For a pointwise operator, the
caller sums broadcast operands back to their shape and casts dtypes back."""


@final
@dataclass(frozen=True, slots=True)
class Pushforward:
    """The arguments of a forward rule: the tangents of the operands (None for zero), the result
    `out`, the operands, and the attributes."""

    tangents: tuple[Value | None, ...]
    out: Value
    args: tuple[Value, ...]
    attrs: Mapping[str, Any]


@final
class Linear:
    """The statement that an operator is linear in each of some groups of operands, by name; its
    tangent is the sum of itself on the tangents of one group at a time.

    The operands in `added` are added to the rest, so they are left out where the tangents of
    another group stand.
    """

    __slots__ = ("added", "groups")

    def __init__(self, *groups: tuple[str, ...], added: str | None = None) -> None:
        self.groups: Final = groups
        self.added: Final = added


Push: TypeAlias = "Callable[[Pushforward], Value | Sequence[Value | None]]"
"""Return the tangent of the result; of a tuple, one for each field. None is zero, or an
integer's."""


@final
@dataclass(frozen=True, slots=True)
class Expansion:
    """The derivative is that of other code for the same value, which also gives what the
    derivative needs: a pool with the positions of its results, a norm with its statistics.

    `body(args, attrs)` emits the code. It stands for the call in the forward function of a
    derivative, and nowhere else.
    """

    body: Callable[[tuple[Value, ...], Mapping[str, Any]], Value]
