"""Optimisers: SGD with momentum, Adam and AdamW, with torch's defaults and arithmetic.

An optimiser is a small object that a script makes once; what it remembers of a model lives here,
keyed by the model, so one optimiser may serve several. Compiled code takes over where the script
stopped, and the other way round: it borrows the memory for a call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final
from weakref import WeakKeyDictionary

import torch

from .. import annotations
from ..diagnostics.catalogue.model import WrongOptimizerState
from ..diagnostics.diagnostic import RunError
from ..diagnostics.wording import counted
from ..ir.ops.descent import update_in_place
from ..translate.optimizers import AdamRule, OptimizerRule, Recipe, SGDRule
from .model import Model
from .records import Part
from .structure import tensors

Tensors: TypeAlias = Sequence[torch.Tensor]


@final
@dataclass(slots=True)
class Moments:
    """What an optimiser remembers of one model: steps taken, and for each of its moments (velocity,
    or means of gradient and square) a tensor like each parameter."""

    step: int = 0
    trees: list[list[torch.Tensor]] = field(default_factory=list[list[torch.Tensor]])

    def fit(self, model: Model, count: int) -> None:
        """Have `count` moments where the parameters are, zeros at first."""
        params = model.flat_params()
        while len(self.trees) < count:
            self.trees.append([torch.zeros_like(p, requires_grad=False) for p in params])
        for tree in self.trees:
            tree[:] = [t.to(p) for t, p in zip(tree, params, strict=True)]


@dataclass(eq=False)
class Optimizer(annotations.Optimizer, ABC):
    """Moves the parameters of a model against their gradient."""

    lr: float
    state: WeakKeyDictionary[Model, Moments] = field(
        default_factory=WeakKeyDictionary[Model, Moments], init=False, repr=False
    )

    @property
    @abstractmethod
    def rule(self) -> OptimizerRule:
        """What it computes, all but the learning rate."""

    @property
    def __relay__(self) -> Recipe:
        return Recipe(self.rule, float(self.lr))

    def update(
        self, model: Model, params: Tensors, grads: Tensors, lr: float | None = None
    ) -> None:
        """Take one step, in place; `lr` stands in for the optimiser's own this once. `params` and
        `grads` are in the model's order."""
        moments = self.moments(model)
        moments.step += 1
        with torch.no_grad():
            self.step(params, grads, moments, self.lr if lr is None else lr)

    @abstractmethod
    def step(self, params: Tensors, grads: Tensors, moments: Moments, lr: float) -> None:
        """Take one step in place, the number `moments.step`, moving `moments` along."""

    def moments(self, model: Model) -> Moments:
        """Give what it remembers of a model."""
        found = self.state.get(model)
        if found is None:
            found = self.state[model] = Moments()
        found.fit(model, self.rule.moments)
        return found

    def state_dict(self, model: Model) -> dict[str, Any]:
        """Give what it remembers of a model, for `torch.save` and `load_state_dict`: the learning
        rate, the number of steps taken, and its moments, each a tensor for every parameter, by
        name. As torch's, the tensors are its own, not copies."""
        found, names = self.moments(model), model.blueprint.param_names
        moments = [dict(zip(names, tree, strict=True)) for tree in found.trees]
        return {"lr": self.lr, "step": found.step, "moments": moments}

    def load_state_dict(self, model: Model, state: Mapping[str, Any]) -> None:
        """Go on with a model where what `state_dict` gave left off. Raises RunError where it is no
        state of this kind of optimiser for this model; nothing is changed then."""
        loaded = _loaded(model, self.rule.moments, state)
        self.lr, self.state[model] = float(state["lr"]), loaded

    def lend(self, model: Model) -> tuple[Any, ...]:
        """Give the learning rate and the memory of a model to compiled code."""
        return memory(model, self.moments(model), self.rule, self.lr)

    def take_back(self, model: Model, lent: tuple[Any, ...]) -> None:
        """Remember what compiled code has left."""
        _, step, trees = lent
        found = self.moments(model)
        found.step = int(step)
        found.trees[: len(trees)] = [tensors(tree) for tree in trees]


def _loaded(model: Model, count: int, state: Mapping[str, Any]) -> Moments:
    """Give copies of saved moments, in the order of the model's parameters. Raises RunError."""
    name, params = model.blueprint.name, model.flat_params()
    if set(state) != {"lr", "step", "moments"}:
        raise RunError(WrongOptimizerState(name, f"it has {_keys(state)}, not lr, step, moments"))
    saved: list[Mapping[str, torch.Tensor]] = list(state["moments"])
    if len(saved) != count:
        why = f"it has {counted(len(saved), 'moment')}, and this optimiser {count}"
        raise RunError(WrongOptimizerState(name, why))
    for tree in saved:
        for param, own in zip(model.blueprint.param_names, params, strict=True):
            there = tuple(tree[param].shape) if param in tree else None
            if there != tuple(own.shape):
                what = "is missing" if there is None else f"has the shape {there}"
                why = f"`{param}` {what}, and is {tuple(own.shape)} in the model"
                raise RunError(WrongOptimizerState(name, why))
    names = model.blueprint.param_names
    trees = [
        [tree[n].detach().to(p, copy=True) for n, p in zip(names, params, strict=True)]
        for tree in saved
    ]
    return Moments(int(state["step"]), trees)


def _keys(state: Mapping[str, Any]) -> str:
    return ", ".join(map(str, state)) or "nothing"


def memory(model: Model, moments: Moments, rule: OptimizerRule, lr: float) -> tuple[Any, ...]:
    """Give the memory of an optimiser as a program has it: rate, steps, and trees of moments."""
    device = next((p.device for p in model.flat_params()), None)
    trees = (model.blueprint.params_tree(tree) for tree in moments.trees[: rule.moments])
    rate = torch.scalar_tensor(float(lr), dtype=torch.float64, device=device)
    return rate, moments.step, tuple(trees)


def fresh_memory(model: Model, rule: OptimizerRule, lr: float) -> tuple[Any, ...]:
    """Give the memory of an optimiser that has taken no step."""
    moments = Moments()
    moments.fit(model, rule.moments)
    return memory(model, moments, rule, lr)


@final
@dataclass(eq=False)
class SGD(Optimizer):
    """Stochastic gradient descent, as `torch.optim.SGD`."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    @property
    def rule(self) -> SGDRule:
        """What it computes, all but the learning rate."""
        return SGDRule(self.momentum, self.weight_decay, self.nesterov)

    def step(self, params: Tensors, grads: Tensors, moments: Moments, lr: float) -> None:
        """Take one step in place."""
        if not self.weight_decay and not self.momentum:
            descend(params, grads, lr)
            return
        for position, (param, grad) in enumerate(zip(params, grads, strict=True)):
            if self.weight_decay:
                grad = grad.add(param, alpha=self.weight_decay)
            if self.momentum:
                grad = self._with_momentum(grad, moments.trees[0][position])
            param.add_(grad, alpha=-lr)

    def _with_momentum(self, grad: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
        velocity.mul_(self.momentum).add_(grad)
        return grad.add(velocity, alpha=self.momentum) if self.nesterov else velocity


@final
@dataclass(eq=False)
class Adam(Optimizer):
    """Adam, as `torch.optim.Adam`; with `decoupled`, AdamW."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    @property
    def rule(self) -> AdamRule:
        """What it computes, all but the learning rate."""
        beta1, beta2 = self.betas
        return AdamRule((beta1, beta2), self.eps, self.weight_decay, self.decoupled)

    def step(self, params: Tensors, grads: Tensors, moments: Moments, lr: float) -> None:
        """Take one step in place."""
        beta1, beta2 = self.betas
        rate = lr / (1 - beta1**moments.step)
        scale = (1 - beta2**moments.step) ** 0.5
        rows = zip(params, grads, *moments.trees[:2], strict=True)
        for param, grad, first, second in rows:
            if self.weight_decay and self.decoupled:
                param.mul_(1 - lr * self.weight_decay)
            elif self.weight_decay:
                grad = grad.add(param, alpha=self.weight_decay)
            first.lerp_(grad, 1 - beta1)
            second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            below = second.sqrt().div_(scale).add_(self.eps)
            param.addcdiv_(first, below, value=-rate)


def descend(params: Tensors, grads: Sequence[Part], lr: float) -> None:
    """Move parameters against their gradients by one step of plain descent, in place.

    An interrupt comes before or after the whole update.
    """
    update_in_place(torch, params, grads, lr)


def optimizer_of(recipe: Recipe) -> Optimizer:
    """Give an optimiser that follows a recipe."""
    match recipe.rule:
        case SGDRule(momentum, weight_decay, nesterov):
            return SGD(recipe.lr, momentum, weight_decay, nesterov)
        case AdamRule(betas, eps, weight_decay, decoupled):
            return Adam(recipe.lr, betas, eps, weight_decay, decoupled)
