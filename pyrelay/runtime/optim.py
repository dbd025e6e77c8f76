"""Optimisers: SGD with momentum, Adam and AdamW, with torch's defaults and arithmetic.

An optimiser is a small object that a script makes once; its state per model lives here, keyed by
the model, so one optimiser may serve several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final
from weakref import WeakKeyDictionary

import torch

from .model import Model

Tensors = Sequence[torch.Tensor]


@dataclass(eq=False)
class Optimizer(ABC):
    """Moves the parameters of a model against their gradient."""

    lr: float
    state: WeakKeyDictionary[Model, Moments] = field(
        default_factory=WeakKeyDictionary[Model, "Moments"], init=False, repr=False
    )

    def update(self, model: Model, params: Tensors, grads: Tensors) -> None:
        """Take one step, in place. `params` and `grads` are in the model's order."""
        moments = self.state.get(model)
        if moments is None:
            moments = Moments(0, [], [])
            self.state[model] = moments
        moments.step += 1
        with torch.no_grad():
            self.step(list(params), list(grads), moments)

    @abstractmethod
    def step(self, params: list[torch.Tensor], grads: list[torch.Tensor], moments: Moments) -> None:
        """Take one step in place, keeping what the next step needs in `moments`."""


@final
@dataclass(slots=True)
class Moments:
    """What an optimiser remembers of one model: steps taken, first and second moments."""

    step: int
    first: list[torch.Tensor]
    second: list[torch.Tensor]


@final
@dataclass(eq=False)
class SGD(Optimizer):
    """Stochastic gradient descent, as `torch.optim.SGD`."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def step(self, params: list[torch.Tensor], grads: list[torch.Tensor], moments: Moments) -> None:
        """Take one step in place."""
        if self.weight_decay:
            grads = list(torch._foreach_add(grads, params, alpha=self.weight_decay))
        if self.momentum:
            grads = self._with_momentum(grads, moments)
        torch._foreach_add_(params, grads, alpha=-self.lr)

    def _with_momentum(self, grads: list[torch.Tensor], moments: Moments) -> list[torch.Tensor]:
        if not moments.first:
            moments.first = [g.clone() for g in grads]
        else:
            torch._foreach_mul_(moments.first, self.momentum)
            torch._foreach_add_(moments.first, grads)
        if self.nesterov:
            return list(torch._foreach_add(grads, moments.first, alpha=self.momentum))
        return moments.first


@final
@dataclass(eq=False)
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), as `torch.optim.Adam`; with `decoupled`, AdamW (Loshchilov and
    Hutter, 2019), whose weight decay does not pass through the moments."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    def step(self, params: list[torch.Tensor], grads: list[torch.Tensor], moments: Moments) -> None:
        """Take one step in place."""
        if not moments.first:
            moments.first = [torch.zeros_like(p) for p in params]
            moments.second = [torch.zeros_like(p) for p in params]
        if self.weight_decay and self.decoupled:
            torch._foreach_mul_(params, 1 - self.lr * self.weight_decay)
        elif self.weight_decay:
            grads = list(torch._foreach_add(grads, params, alpha=self.weight_decay))
        beta1, beta2 = self.betas
        torch._foreach_lerp_(moments.first, grads, 1 - beta1)
        torch._foreach_mul_(moments.second, beta2)
        torch._foreach_addcmul_(moments.second, grads, grads, value=1 - beta2)
        scale = (1 - beta2**moments.step) ** 0.5
        below = torch._foreach_sqrt(moments.second)
        torch._foreach_div_(below, scale)
        torch._foreach_add_(below, self.eps)
        rate = self.lr / (1 - beta1**moments.step)
        torch._foreach_addcdiv_(params, moments.first, below, value=-rate)


def sgd(
    lr: float, momentum: float = 0.0, weight_decay: float = 0.0, *, nesterov: bool = False
) -> SGD:
    """Give stochastic gradient descent with torch's arithmetic."""
    return SGD(lr, momentum, weight_decay, nesterov)


def adam(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Adam:
    """Give Adam with torch's defaults."""
    return Adam(lr, betas, eps, weight_decay)


def adamw(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Adam:
    """Give AdamW with torch's defaults."""
    return Adam(lr, betas, eps, weight_decay, decoupled=True)


DEFAULT_LR: Final = 0.01
"""The learning rate of an update that names none."""
