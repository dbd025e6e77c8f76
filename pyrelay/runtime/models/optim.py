"""Optimisers: SGD with momentum, Adam and AdamW, with torch's defaults and arithmetic.

An optimiser is a small object that a script makes once; what it remembers of a model lives here,
keyed by the model, so one optimiser may serve several. Compiled code takes over where the script
stopped, and the other way round: it borrows the memory for a call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias, final
from weakref import WeakKeyDictionary

import torch

from ... import annotations
from ...dataclass import dataclass
from ...diagnostics.catalogue.model import WrongOptimizerState
from ...diagnostics.diagnostic import RunError
from ...diagnostics.wording import counted
from ...operators.composite.descent import descent_steps
from ...translate.source.optimizers import AdamRule, OptimizerRule, Recipe, SGDRule
from ..values.structure import tensors
from .commit import Change, setting
from .model import Model
from .records import Part, summed, whole

_lists: Final[Any] = torch
"""Where the functions on lists of tensors are, `_foreach_add_` and its kind, which torch's own
optimisers call as well."""

Tensors: TypeAlias = Sequence[torch.Tensor]


@final
@dataclass(slots=True)
class Moments:
    """The state of an optimiser for one model: how many steps each parameter has taken, which is
    fewer for one that was frozen for a while, and for each of its moments (velocity, or means of
    gradient and square) a tensor like each parameter.

    The counts are numbers for scripts, and a tensor on the device for compiled code, which counts
    on in it: whoever asks for the other form converts them."""

    counts: list[int] | torch.Tensor = field(default_factory=list[int])
    trees: list[list[torch.Tensor]] = field(default_factory=list[list[torch.Tensor]])
    _rate: tuple[float, torch.Tensor] | None = None

    @property
    def step(self) -> int:
        """How many updates there were: the most steps that a parameter has taken."""
        return max(self.numbers(), default=0)

    def fit(self, model: Model, count: int) -> None:
        """Have `count` moments where the parameters are, zeros at first."""
        params = model.flat_params()
        if not len(self.counts):
            self.counts = [0] * len(params)
        while len(self.trees) < count:
            self.trees.append([torch.zeros_like(p, requires_grad=False) for p in params])
        for tree in self.trees:
            for place, (t, p) in enumerate(zip(tree, params, strict=True)):
                if t.dtype is not p.dtype or t.device != p.device:
                    tree[place] = t.to(p)

    def numbers(self) -> list[int]:
        """Return the counts as numbers."""
        if isinstance(self.counts, torch.Tensor):
            self.counts = [int(n) for n in self.counts.tolist()]
        return self.counts

    def tensor(self, device: torch.device | None) -> torch.Tensor:
        """Return the counts as a tensor of shape (parameters,) and float64 on a device."""
        if not isinstance(self.counts, torch.Tensor):
            self.counts = torch.tensor(self.counts, dtype=torch.float64, device=device)
        elif self.counts.device != device:
            self.counts = self.counts.to(device)
        return self.counts

    def rate(self, lr: float, device: torch.device | None) -> torch.Tensor:
        """Return the learning rate as a tensor of rank 0 and float64 on a device, the same one
        until it changes."""
        if self._rate is None or self._rate[0] != lr or self._rate[1].device != device:
            self._rate = lr, torch.scalar_tensor(lr, dtype=torch.float64, device=device)
        return self._rate[1]

    def after(self, params: Tensors) -> list[int]:
        """Return the counts after one more step of the parameters that require a gradient."""
        rows = zip(self.numbers(), params, strict=True)
        return [count + 1 if p.requires_grad else count for count, p in rows]


@final
@dataclass(frozen=True, slots=True)
class Moving:
    """The parameters that one step moves and that have taken equally many steps, with their
    gradients and moments; `step` is the number of this step."""

    params: list[torch.Tensor]
    grads: list[torch.Tensor]
    trees: list[list[torch.Tensor]]
    step: int


@final
@dataclass(frozen=True, slots=True)
class MovedRows:
    """A parameter with its moments, of which a step moves some rows; `own` are these rows, as
    tensors of their own."""

    numbers: torch.Tensor
    whole: list[torch.Tensor]
    own: list[torch.Tensor]
    grad: torch.Tensor

    @staticmethod
    def of(whole: list[torch.Tensor], part: Part) -> MovedRows:
        """Return the rows that a gradient is not zero in."""
        grad, numbers = summed(part) if isinstance(part, tuple) else (part, None)
        moves = grad.ne(0).reshape(len(grad), grad.shape[1:].numel()).any(1).nonzero().squeeze(1)
        numbers = moves if numbers is None else numbers[moves]
        own = [t.detach().index_select(0, numbers) for t in whole]
        return MovedRows(numbers, whole, own, grad[moves])

    def changes(self) -> list[Change]:
        """Return the changes that put the rows back."""
        pairs = zip(self.whole, self.own, strict=True)
        return [partial(w.index_copy_, 0, self.numbers, o) for w, o in pairs]


def _moving(
    model: Model, params: Tensors, grads: Sequence[Part], moments: Moments
) -> tuple[list[Moving], list[MovedRows]]:
    """Return the parameters that require a gradient, by the number of steps they have taken, and
    those of which some rows alone move: tables."""
    tables = [leaf.spec.is_table for leaf in model.blueprint.params]
    places: dict[int, list[int]] = {}
    for place, (param, count) in enumerate(zip(params, moments.numbers(), strict=True)):
        if param.requires_grad:
            places.setdefault(count, []).append(place)
    moving: list[Moving] = []
    rows: list[MovedRows] = []
    for count, found in places.items():
        columns: list[list[torch.Tensor]] = []
        against: list[torch.Tensor] = []
        for i in found:
            own, grad = [params[i], *(tree[i] for tree in moments.trees)], grads[i]
            if tables[i]:
                rows.append(MovedRows.of(own, grad))
                own, grad = rows[-1].own, rows[-1].grad
            columns.append(own)
            against.append(whole(grad, params[i].shape))
        first, *trees = map(list, zip(*columns, strict=True))
        moving.append(Moving(first, against, trees, count + 1))
    return moving, rows


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
        """The rule and its settings, without the learning rate."""

    @property
    def __relay__(self) -> Recipe:
        return Recipe(self.rule, float(self.lr))

    def step_changes(
        self, model: Model, params: Tensors, grads: Sequence[Part], lr: float | None = None
    ) -> list[Change]:
        """Return the changes that one step is, in place; `lr` stands in for the optimiser's own
        this once. `params` and `grads` are in the model's order. Parameters that require no
        gradient stay. Of a table, in which the model only looks rows up, the rows whose gradient is
        not zero take part alone, and those of its moments: the other rows neither decay nor go on
        moving. Raises IndexError where a row does not exist.
        """
        moments, rate = self.moments(model), self.lr if lr is None else lr
        moving, rows = _moving(model, params, grads, moments)
        changes = [c for m in moving for c in self.changes(m, rate)]
        changes += [c for each in rows for c in each.changes()]
        return [*changes, setting(moments, "counts", moments.after(params))]

    @abstractmethod
    def changes(self, moving: Moving, lr: float) -> list[Change]:
        """Return the changes to parameters and moments, in place, that one step is."""

    def moments(self, model: Model) -> Moments:
        """Return its state for a model."""
        found = self.state.get(model)
        if found is None:
            found = self.state[model] = Moments()
        found.fit(model, self.rule.moments)
        return found

    def state_dict(self, model: Model) -> dict[str, Any]:
        """Return the state for a model, for `torch.save` and `load_state_dict`: the learning rate,
        the number of steps taken, and its moments, each a tensor for every parameter, by name; with
        `late`, the steps that parameters sat out while they were frozen. As torch's, the tensors
        are its own, not copies."""
        found, names = self.moments(model), model.blueprint.param_names
        moments = [dict(zip(names, tree, strict=True)) for tree in found.trees]
        step, taken = found.step, zip(names, found.numbers(), strict=True)
        state = {"lr": self.lr, "step": step, "moments": moments}
        late = {n: step - count for n, count in taken if count < step}
        return {**state, "late": late} if late else state

    def load_state_dict(self, model: Model, state: Mapping[str, Any]) -> None:
        """Go on with a model where what `state_dict` gave left off. Raises RunError where it is no
        state of this kind of optimiser for this model; nothing is changed then."""
        loaded = _loaded(model, self.rule.moments, state)
        self.lr, self.state[model] = float(state["lr"]), loaded

    def lend(self, model: Model) -> tuple[Any, ...]:
        """Return the learning rate and the memory of a model to compiled code."""
        return memory(model, self.moments(model), self.rule, self.lr)

    def taking_back(self, model: Model, lent: tuple[Any, ...]) -> list[Change]:
        """Return the changes that remember what compiled code has left of what it was lent."""
        _, counts, trees = lent
        found = self.state[model]
        kept = found.trees[len(trees) :]
        return [
            setting(found, "counts", counts),
            setting(found, "trees", [*map(tensors, trees), *kept]),
        ]


def _loaded(model: Model, count: int, state: Mapping[str, Any]) -> Moments:
    """Return copies of saved moments, in the order of the model's parameters. Raises RunError."""
    name, params = model.blueprint.name, model.flat_params()
    if set(state) - {"late"} != {"lr", "step", "moments"}:
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
    late: Mapping[str, int] = state.get("late", {})
    return Moments([int(state["step"]) - int(late.get(n, 0)) for n in names], trees)


def _keys(state: Mapping[str, Any]) -> str:
    return ", ".join(map(str, state)) or "nothing"


def memory(model: Model, moments: Moments, rule: OptimizerRule, lr: float) -> tuple[Any, ...]:
    """Return the memory of an optimiser as a program has it: the rate, the steps that the
    parameters have taken, and trees of moments."""
    device = next((p.device for p in model.flat_params()), None)
    trees = (model.blueprint.params_tree(tree) for tree in moments.trees[: rule.moments])
    return moments.rate(float(lr), device), moments.tensor(device), tuple(trees)


def fresh_memory(model: Model, rule: OptimizerRule, lr: float) -> tuple[Any, ...]:
    """Return the memory of an optimiser that has taken no step."""
    moments = Moments()
    moments.fit(model, rule.moments)
    return memory(model, moments, rule, lr)


_sgd_rule: Final = lru_cache(SGDRule)
_adam_rule: Final = lru_cache(AdamRule)
"""The rules by their settings: one is asked for in each step."""


@final
@dataclass(eq=False)
class SGD(Optimizer):
    """Stochastic gradient descent, as `torch.optim.SGD`."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    @property
    def rule(self) -> SGDRule:
        """The rule and its settings, without the learning rate."""
        return _sgd_rule(self.momentum, self.weight_decay, self.nesterov)

    def changes(self, moving: Moving, lr: float) -> list[Change]:
        """Return the changes that one step is."""
        params, grads = moving.params, moving.grads
        if self.weight_decay:
            grads = _lists._foreach_add(grads, params, alpha=self.weight_decay)  # noqa: SLF001
        if not self.momentum:
            return [partial(_lists._foreach_add_, params, grads, alpha=-lr)]
        velocity = direction = moving.trees[0]
        found: list[Change] = [
            partial(_lists._foreach_mul_, velocity, self.momentum),
            partial(_lists._foreach_add_, velocity, grads),
        ]
        if self.nesterov:
            direction = [torch.empty_like(p) for p in params]
            found += [
                partial(_lists._foreach_copy_, direction, velocity),
                partial(_lists._foreach_mul_, direction, self.momentum),
                partial(_lists._foreach_add_, direction, grads),
            ]
        return [*found, partial(_lists._foreach_add_, params, direction, alpha=-lr)]


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
        """The rule and its settings, without the learning rate."""
        beta1, beta2 = self.betas
        return _adam_rule((beta1, beta2), self.eps, self.weight_decay, self.decoupled)

    def changes(self, moving: Moving, lr: float) -> list[Change]:
        """Return the changes that one step is."""
        (beta1, beta2), params, grads = self.betas, moving.params, moving.grads
        first, second = moving.trees[:2]
        found: list[Change] = []
        if self.weight_decay and self.decoupled:
            found.append(partial(_lists._foreach_mul_, params, 1 - lr * self.weight_decay))
        elif self.weight_decay:
            grads = _lists._foreach_add(grads, params, alpha=self.weight_decay)  # noqa: SLF001
        below = [torch.empty_like(p) for p in params]
        return [
            *found,
            partial(_lists._foreach_lerp_, first, grads, 1 - beta1),
            partial(_lists._foreach_mul_, second, beta2),
            partial(_lists._foreach_addcmul_, second, grads, grads, value=1 - beta2),
            partial(_lists._foreach_copy_, below, second),
            partial(_lists._foreach_sqrt_, below),
            partial(_lists._foreach_div_, below, (1 - beta2**moving.step) ** 0.5),
            partial(_lists._foreach_add_, below, self.eps),
            partial(_lists._foreach_addcdiv_, params, first, below, -lr / (1 - beta1**moving.step)),
        ]


def descent(params: Tensors, grads: Sequence[Part], lr: float) -> list[Change]:
    """Return the changes that one step of plain descent is, in place; parameters that require no
    gradient stay. Raises IndexError where a row does not exist."""
    if not all(p.requires_grad for p in params):
        moving = [(p, g) for p, g in zip(params, grads, strict=True) if p.requires_grad]
        params, grads = [p for p, _ in moving], [g for _, g in moving]
    return descent_steps(torch, params, grads, lr)


def optimizer_of(recipe: Recipe) -> Optimizer:
    """Return an optimiser that follows a recipe."""
    match recipe.rule:
        case SGDRule(momentum, weight_decay, nesterov):
            return SGD(recipe.lr, momentum, weight_decay, nesterov)
        case AdamRule(betas, eps, weight_decay, decoupled):
            return Adam(recipe.lr, betas, eps, weight_decay, decoupled)
