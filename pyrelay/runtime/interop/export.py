"""Exported models: a plain callable over a frozen copy of the weights.

An exported model needs neither the source nor the decorators: it has the checked IR and the
tensors, runs in eval mode, and pickles by value, as the bytes that `save` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

from ...ir.dims import Dim
from ...ir.module import Module
from ...ir.op import Op
from ...passes.ranks import Ranks
from ...text.printer import to_text
from ..border.autograd import with_tensors
from ..border.devices import CPU
from ..border.value_types import TypesOfValues, definitions_in
from ..compile.inspected import type_text
from ..entries.entry import Entry
from ..entries.open_program import EvalProgram, OpenProgram, RankReader
from ..values.representation import Instances
from ..values.structure import tensors
from ..values.values import Cell, cells_of
from . import saving
from .folding import folded
from .loading import load

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from ..models.model import Model


@final
class Exported:
    """A model as a function: call it with the arguments of its definition."""

    def __init__(self, base: EvalProgram, params: Any, state: Any) -> None:
        """`params` and `state` are the program's nested tuples, of tensors and of cells."""
        interface = base.interface
        self.__name__: str = interface.name
        self.__signature__: Final = interface.signature  # what `help` and `inspect` show
        self._interface: Final = interface
        self._program: Final = base.program
        self._head: Final = base.head
        self._params: Final = params
        self._state: Final = state
        self._base: Final = base
        self._entry: Final = _entry(base)
        fields = definitions_in(base.program.translated.adts, base.program.data)
        reader = TypesOfValues(fields, Dim.of)
        self._ranks: Final = RankReader(base.opened.parameters[2:], reader.fields)
        self._instances: Final[dict[Ranks, tuple[EvalProgram, Entry]]] = {}

    @staticmethod
    def of(model: Model, base: EvalProgram) -> Exported:
        """Return the exported form of a model of the definition."""
        _, cells = model.state_cells()
        state = model.blueprint.state_tree([cell.value for cell in cells])
        return Exported.of_values(base, model.params_tree(), state)

    @staticmethod
    def of_values(base: EvalProgram, params: Any, state: Any) -> Exported:
        """Return the exported form of parameters and state, both copied."""
        copies = [[t.detach().clone() for t in tensors(tree)] for tree in (params, state)]
        frozen = with_tensors(params, copies[0])
        cells = with_tensors(state, [Cell(t) for t in copies[1]])
        return Exported(*folded(base, frozen, cells), cells)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value of the model at arguments. Raises RunError."""
        values = self._interface.ordered(args, kwargs, self._head)
        entry = self._instance(values)[1] if self._ranks.has_ranks else self._entry
        return entry((self._params, self._state, *values))

    def _instance(self, values: Sequence[Any]) -> tuple[EvalProgram, Entry]:
        """Return the program at the ranks of arguments, and its entry."""
        ranks = self._ranks.ranks(values)
        if not ranks:
            return self._base, self._entry
        if ranks not in self._instances:
            base = self._base.at(ranks)
            self._instances[ranks] = base, _entry(base)
        return self._instances[ranks]

    def __repr__(self) -> str:
        hyper = ", ".join(f"{n}={v}" for n, v in self._interface.hyper.items())
        return f"<exported {self.__name__}({hyper})>" if hyper else f"<exported {self.__name__}>"

    def __str__(self) -> str:
        return to_text(self._program.typed)

    @property
    def type(self) -> str:
        """The type, its sizes and the equations between them included, without the weights."""
        return type_text(self._program, skip=2)

    @property
    def module(self) -> Module:
        """The typed IR of the model and everything it reaches."""
        return self._program.typed

    @property
    def classes(self) -> Mapping[str, type]:
        """The classes of its arguments and results, by name."""
        forms = self._program.data.representations.values()
        return {c.__name__: c for f in forms if isinstance(f, Instances) for c in f.classes}

    def save(self, path: str | Path) -> None:
        """Write the model to one file: its program as text, its weights as safetensors.

        The file is complete or not there: it is written beside `path` and then renamed. Equal
        models give equal bytes. `relay.load_model` reads it. Raises RunError where the model holds
        what no file can, and OSError where the file cannot be written.
        """
        saving.write(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the bytes that `save` writes. Raises RunError."""
        interface = self._interface
        weights: dict[str, torch.Tensor] = {}
        weights |= zip(interface.params, tensors(self._params), strict=True)
        weights |= zip(interface.state, [c.value for c in cells_of(self._state)], strict=True)
        program = self._program
        typed = OpenProgram(program.typed, program.entry, program.data)
        saved = self._base.opened if self._ranks.has_ranks else typed
        return saving.pack(interface, saved, weights)

    def to_torch(self, *args: Any, **kwargs: Any) -> ExportedProgram:
        """Return the model as a program of `torch.export`, recorded at example arguments.

        It needs nothing of pyrelay. Sizes stay open where torch finds them so. Raises RunError for
        a model that is no graph: one that takes data, or decides by values.
        """
        from .to_torch import torch_program  # torch.export takes a second to import

        interface = self._interface
        values = interface.ordered(args, kwargs, self._head)
        base, entry = self._instance(values)
        entry((self._params, self._state, *values))  # raises what is wrong with them
        examples = dict(zip((a.name for a in interface.arguments), values, strict=True))
        names = (interface.params, interface.state)
        weights = (self._params, self._state)
        return torch_program(
            interface.name, base.program, base.parameters[2:], self._head, weights, names, examples
        )

    def __reduce__(self) -> Any:
        return load_bytes, (self.to_bytes(),)


def _entry(base: EvalProgram) -> Entry:
    return Entry(
        base.interface.name,
        base.program,
        base.parameters,
        base.interface.result,
        joins=True,
        models=2,
    )


def load_bytes(
    data: bytes,
    path: str = "<bytes>",
    device: torch.device = CPU,
    operators: Mapping[str, Op] = MappingProxyType({}),
) -> Exported:
    """Return the model in the bytes of a file, its weights on a device. Raises CheckError."""
    return Exported(*load(data, path, device, operators))
