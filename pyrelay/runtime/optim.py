"""Optimisers: SGD with momentum, Adam and AdamW, with torch's defaults and arithmetic.

An optimiser is a small object that a script makes once; its state per model lives here, keyed by
the model, so one optimiser may serve several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final
from weakref import WeakKeyDictionary

import torch

from .model import Model

Tensors: TypeAlias = Sequence[torch.Tensor]


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
            self.step(params, grads, moments)

    @abstractmethod
    def step(self, params: Tensors, grads: Tensors, moments: Moments) -> None:
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

    def step(self, params: Tensors, grads: Tensors, moments: Moments) -> None:
        """Take one step in place."""
        if self.momentum and not moments.first:
            moments.first = [torch.zeros_like(p) for p in params]
        for position, (param, grad) in enumerate(zip(params, grads, strict=True)):
            if self.weight_decay:
                grad = grad.add(param, alpha=self.weight_decay)
            if self.momentum:
                grad = self._with_momentum(grad, moments.first[position])
            param.add_(grad, alpha=-self.lr)

    def _with_momentum(self, grad: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
        velocity.mul_(self.momentum).add_(grad)
        return grad.add(velocity, alpha=self.momentum) if self.nesterov else velocity


@final
@dataclass(eq=False)
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), as `torch.optim.Adam`; with `decoupled`, AdamW (Loshchilov and
    Hutter, 2019), whose weight decay does not pass through the moments."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    def step(self, params: Tensors, grads: Tensors, moments: Moments) -> None:
        """Take one step in place."""
        if not moments.first:
            moments.first = [torch.zeros_like(p) for p in params]
            moments.second = [torch.zeros_like(p) for p in params]
        beta1, beta2 = self.betas
        rate = self.lr / (1 - beta1**moments.step)
        scale = (1 - beta2**moments.step) ** 0.5
        rows = zip(params, grads, moments.first, moments.second, strict=True)
        for param, grad, first, second in rows:
            if self.weight_decay and self.decoupled:
                param.mul_(1 - self.lr * self.weight_decay)
            elif self.weight_decay:
                grad = grad.add(param, alpha=self.weight_decay)
            first.lerp_(grad, 1 - beta1)
            second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            below = second.sqrt().div_(scale).add_(self.eps)
            param.addcdiv_(first, below, value=-rate)


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
