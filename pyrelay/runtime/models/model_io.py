"""Values that a call borrows from models and optimisers, and returns when it ends in any way.

A program gets a model's parameters as tuples and cells. An interrupted loop leaves the last whole
update in them, so that is what goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, final

import torch

from ...passes.ranks import Ranks
from ...translate.program.described import Described
from ...translate.source.optimizers import OptimizerUse
from ..values.structure import tensors
from ..values.values import Cell
from .commit import Change, commit
from .model import Model
from .optim import Optimizer, fresh_memory
from .records import Params, TensorRecord

Statics: TypeAlias = tuple[tuple[str, Any], ...]
ParameterSource: TypeAlias = Model | Params
"""Where the parameters of an implicit model come from."""


@final
class Models(tuple[Model, ...]):
    """The models in a list that is an argument: instances of one definition, made alike."""

    __slots__ = ()


NO_OPTIMIZERS: Final[Mapping[str, Optimizer]] = {}


@final
class Arguments(NamedTuple):
    """The arguments of a call: those that are values, those that are static, and the optimisers
    among these as the objects they are. `types` is what type parameters stand for, where the
    program is one for these types alone; `ranks` how many sizes each `...` in a shape does;
    `implicit` are the values given by names that are no parameter's."""

    values: tuple[Any, ...]
    statics: Statics = ()
    optimizers: Mapping[str, Optimizer] = NO_OPTIMIZERS
    types: tuple[tuple[str, Described], ...] = ()
    ranks: Ranks = ()
    implicit: Mapping[str, Any] = {}


Finish: TypeAlias = Callable[[], None]
Returned: TypeAlias = Callable[[], Iterable[Change]]
"""The changes that give back what a call has left in its cells."""


def host_values(
    models: Sequence[ParameterSource],
    values: Sequence[Any],
    updated: Mapping[int, OptimizerUse],
    optimizers: Mapping[str, Optimizer] = NO_OPTIMIZERS,
) -> tuple[list[Any], Finish]:
    """Return the values of an entry's parameters, and what to do when the call has ended, which may
    be done twice. `values` are the arguments behind the implicit models; the keys of `updated` are
    the indices of models that an optimiser updates."""
    host: list[Any] = []
    after: list[Returned] = []
    for source in models:
        if isinstance(source, Params):
            cells = [Cell(value) for value in source.home.state]
            host += (source.tree, source.home.blueprint.state_tree(cells))
            continue
        state, cells = source.state_cells()
        host += (source.params_tree(), state)
        if cells:
            after.append(lambda m=source, c=cells: m.storing_state(c))
    for index, value in enumerate(values):
        if value.__class__ is torch.Tensor:
            host.append(value)
            continue
        if not isinstance(value, Model | Models):
            host.append(value.tree if isinstance(value, TensorRecord) else value)
            continue
        several = value if isinstance(value, Models) else (value,)
        found = [_model(m, updated.get(index), optimizers) for m in several]
        lent = [each for each, _ in found]
        host.append(lent if isinstance(value, Models) else lent[0])
        after += (returned for _, returned in found)

    if not after:
        return host, _nothing

    def finish() -> None:
        commit(change for returned in after for change in returned())

    return host, finish


def given_back(lent: Iterable[tuple[Model, Sequence[Cell], Cell | None, Any]]) -> None:
    """Store the parameters and state of models, after a call, from the cells that the call updates.

    For each model: the cells of its state, the cell of its parameters or None where they are no
    argument of their own, and the value of that cell before the call."""
    commit(change for each in lent for change in _left(*each))


def _left(model: Model, state: Sequence[Cell], cell: Cell | None, lent: Any) -> Iterator[Change]:
    yield from model.storing_state(state)
    if cell is not None and cell.value is not lent:  # else it is in the storage of what was lent
        yield from model.storing_params(tensors(cell.value[0]))


def _nothing() -> None:
    """Do nothing: a call without state has nothing to return."""


def _model(
    model: Model, use: OptimizerUse | None, optimizers: Mapping[str, Optimizer]
) -> tuple[Any, Returned]:
    """Return the value of an explicit model with the memory of its optimiser, and the changes that
    give back what the call has left of both."""
    optimizer = None if use is None else _optimizer(use, optimizers)
    state, cells = model.state_cells()
    memory: tuple[Any, ...] = ()
    if optimizer is not None:
        memory = optimizer.lend(model)
    elif use is not None:
        memory = fresh_memory(model, use.rule, use.lr)
    lent = model.params_tree(), memory
    cell = Cell(lent)

    def returned() -> Iterable[Change]:
        yield from model.storing_state(cells)
        if cell.value is lent:
            return  # what is new is in the storage of what was lent
        params, memory = cell.value
        if params is not lent[0]:
            yield from model.storing_params(tensors(params))
        if optimizer is not None:
            yield from optimizer.taking_back(model, memory)

    return (cell, state), returned


def _optimizer(use: OptimizerUse, optimizers: Mapping[str, Optimizer]) -> Optimizer | None:
    """Return the object that an optimiser of a program is; None for one that the program makes."""
    if use.is_made_inside:
        return None
    found = optimizers[use.source] if isinstance(use.source, str) else use.source
    assert isinstance(found, Optimizer)
    return found
