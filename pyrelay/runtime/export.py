"""Exported models: a plain callable over a frozen copy of the weights.

An exported model needs neither the source nor the decorators: it holds the checked IR and the
tensors, pickles by value (the IR as text), and runs in eval mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final

from ..diagnostics.catalogue.call import WrongCall
from ..diagnostics.diagnostic import RunError
from ..diagnostics.source import NOWHERE
from ..ir.json import from_json, to_json
from ..ir.module import Module
from .arguments import Parameter
from .autograd import tensors, with_tensors
from .entry import Entry
from .program import Program
from .values import Cell

if TYPE_CHECKING:
    import torch

    from .model import Model


@final
class Exported:
    """A model as a function: call it with the arguments of its definition."""

    def __init__(
        self,
        name: str,
        program: Program,
        parameters: tuple[Parameter, ...],
        params: Any,
        state: Any,
    ) -> None:
        self.__name__: str = name
        self._program: Final = program
        self._params: Final = params
        self._state: Final = state
        self._names: Final = [p.name for p in parameters[2:]]
        self._entry: Final = Entry(name, program, parameters, None, models=2)

    @staticmethod
    def of(model: Model, entry: Entry) -> Exported:
        """Give the exported form of a model; `entry` runs its definition in eval mode."""
        _, cells = model.state_cells()
        state = model.blueprint.state_tree([cell.value for cell in cells])
        return Exported.of_values(entry, model.params_tree(), state)

    @staticmethod
    def of_values(entry: Entry, params: Any, state: Any) -> Exported:
        """Give the exported form of parameters and state, both copied."""
        copies = [[t.detach().clone() for t in tensors(tree)] for tree in (params, state)]
        frozen = with_tensors(params, copies[0])
        cells = with_tensors(state, [Cell(t) for t in copies[1]])
        return Exported(entry.name, entry.program, entry.parameters, frozen, cells)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Give the value of the model at arguments. Raises RunError."""
        return self._entry((self._params, self._state, *self._ordered(args, kwargs)))

    def _ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
        names = self._names
        if not kwargs and len(args) == len(names):
            return args
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or (list(given) != names and set(given) != set(names)):
            takes = ", ".join(names)
            raise RunError(WrongCall(self.__name__, NOWHERE, f"takes ({takes})"))
        return [given[n] for n in names]

    def __repr__(self) -> str:
        return f"<exported {self.__name__}>"

    def __reduce__(self) -> Any:
        weights = [t.detach() for t in tensors(self._params)]
        state = [c.value for c in _cells(self._state)]
        form = (with_tensors(self._params, range(len(weights))), _numbered(self._state))
        text = to_json(self._program.typed)
        return _restore, (self.__name__, text, self._program.entry, form, weights, state)


def _cells(tree: Any) -> list[Cell]:
    found: list[Cell] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, Cell):
            found.append(value)
        else:
            pending += reversed(value)
    return found


def _numbered(tree: Any) -> Any:
    """Give a tree of cells as a tree of the cells' positions."""
    positions = {id(cell): i for i, cell in enumerate(_cells(tree))}

    def build(value: Any) -> Any:
        return positions[id(value)] if isinstance(value, Cell) else tuple(map(build, value))

    return build(tree)


def _restore(
    name: str,
    text: str,
    entry: str,
    form: tuple[Any, Any],
    weights: list[torch.Tensor],
    state: list[torch.Tensor],
) -> Exported:
    module = from_json(text)
    assert isinstance(module, Module)

    def fill(tree: Any, values: Sequence[Any]) -> Any:
        return values[tree] if isinstance(tree, int) else tuple(fill(t, values) for t in tree)

    program = Program.of_typed(module, entry)
    parameters = tuple(
        Parameter(v.name, v.ty, v.span) for v in program.function.params if v.ty is not None
    )
    cells = [Cell(value) for value in state]
    return Exported(name, program, parameters, fill(form[0], weights), fill(form[1], cells))
