"""Optimisers as a program sees them: what they compute, and where they come from.

A script's optimiser carries a `Recipe` in its attribute `__relay__`, and `relay.optim.adam` and its
kind carry a `Maker`. Compiled code knows an optimiser as an `OptimizerUse`; its learning rate and
what it remembers of a model are values of the running program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.source import Span


@final
@dataclass(frozen=True, slots=True)
class SGDRule:
    """Stochastic gradient descent, as `torch.optim.SGD`."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.momentum < 0 or self.weight_decay < 0:
            raise ValueError("momentum and weight decay are not negative")
        if self.nesterov and not self.momentum:
            raise ValueError("Nesterov's way needs a momentum")

    @property
    def moments(self) -> int:
        """How many tensors it keeps for each parameter: the velocity, if there is momentum."""
        return 1 if self.momentum else 0


@final
@dataclass(frozen=True, slots=True)
class AdamRule:
    """Adam (Kingma and Ba, 2015), as `torch.optim.Adam`; with `decoupled`, AdamW (Loshchilov and
    Hutter, 2019), whose weight decay does not pass through the moments."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    def __post_init__(self) -> None:
        if self.eps < 0 or self.weight_decay < 0:
            raise ValueError("`eps` and weight decay are not negative")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"the betas lie in [0, 1), not {self.betas}")

    @property
    def moments(self) -> int:
        """How many tensors it keeps for each parameter: the means of gradient and square."""
        return 2


OptimizerRule: TypeAlias = SGDRule | AdamRule
"""The rule of an optimiser and its settings, without the learning rate."""


@final
@dataclass(frozen=True, slots=True)
class Recipe:
    """The description of an optimiser."""

    rule: OptimizerRule
    lr: float

    def __post_init__(self) -> None:
        if self.lr < 0:
            raise ValueError(f"the learning rate is not negative, so not {self.lr}")


def sgd(
    lr: float, momentum: float = 0.0, weight_decay: float = 0.0, *, nesterov: bool = False
) -> Recipe:
    """Return stochastic gradient descent with torch's arithmetic."""
    return Recipe(SGDRule(momentum, weight_decay, nesterov), _rate(lr))


def adam(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Recipe:
    """Return Adam with torch's defaults."""
    return Recipe(AdamRule(_pair(betas), eps, weight_decay), _rate(lr))


def adamw(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Recipe:
    """Return AdamW with torch's defaults."""
    return Recipe(AdamRule(_pair(betas), eps, weight_decay, decoupled=True), _rate(lr))


def _rate(lr: float) -> float:
    if isinstance(lr, str) or not hasattr(lr, "__float__"):
        raise TypeError(f"the learning rate is a number, not {lr!r}")
    return float(lr)


def _pair(betas: Sequence[float]) -> tuple[float, float]:
    first, second = betas
    return first, second


@final
@dataclass(frozen=True, slots=True)
class Maker:
    """A function of `relay.optim`."""

    name: str
    make: Callable[..., Recipe]


MAKERS: Final = (Maker("sgd", sgd), Maker("adam", adam), Maker("adamw", adamw))


def is_optimizer(value: object) -> bool:
    """Return whether a Python object is an optimiser of `relay.optim`."""
    return isinstance(getattr(value, "__relay__", None), Recipe)


@final
@dataclass(frozen=True, slots=True)
class OptimizerUse:
    """An optimiser in a program.

    `source` identifies it among those of its rule: the parameter of the entry that it is passed
    for, the captured object, or the place where compiled code makes it. `lr` is its learning rate
    when the program was translated; the running program gets the one of its day.
    """

    rule: OptimizerRule
    source: str | Span | Any
    lr: float = field(compare=False)

    @property
    def __relay__(self) -> Recipe:
        return Recipe(self.rule, self.lr)

    @property
    def is_made_inside(self) -> bool:
        """Return whether compiled code makes it, so that no script ever sees it."""
        return isinstance(self.source, Span)

    def __repr__(self) -> str:
        return type(self.rule).__name__.removesuffix("Rule").lower()


STAND_IN: Final = OptimizerUse(AdamRule(), "", 0.0)
"""An optimiser in place of one that is missing, which has been reported."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class OptimizerGuard:
    """A captured optimiser and what it was when the program was translated.

    `lr` is None where the running program asks for the learning rate.
    """

    optimizer: Any
    rule: OptimizerRule
    lr: float | None

    def holds(self) -> bool:
        """Return whether the optimiser is still the same."""
        now: Recipe = self.optimizer.__relay__
        return now.rule == self.rule and self.lr in (None, now.lr)
