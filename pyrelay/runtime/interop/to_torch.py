"""Exported models as programs of `torch.export`: for what runs torch and knows nothing of pyrelay.

The host code of a program is calls of torch, so torch records them as it records any module's. What
decides by values, or has data, is no graph, and is refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as InputParameter
from inspect import Signature
from typing import TYPE_CHECKING, Any, Final, final

import torch
from torch import nn

from ...config import options
from ...diagnostics.catalogue.model import NoGraph
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import Span
from ...ir.types import TensorType, TupleType, Type, show
from ..border.autograd import with_tensors
from ..values.structure import tensors
from ..values.values import cells_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from ..border.places import Parameter
    from ..compile.program import Program


@final
class _Module(nn.Module):
    """A program as a module of torch, with its parameters and buffers under their names."""

    def __init__(
        self,
        program: Program,
        device: torch.device,
        params: Any,
        state: Any,
        names: tuple[Sequence[str], Sequence[str]],
        inputs: Sequence[str],
    ) -> None:
        super().__init__()
        self.forward = _named(self._forward, inputs)
        self._run: Final = program.as_torch(device)
        self._names: Final = names
        self._template: Final = params
        self._state: Final = copy.deepcopy(state)
        self._cells: Final = cells_of(self._state)
        for name, value in zip(names[0], tensors(params), strict=True):
            home, last = self._home(name)
            home.register_parameter(last, nn.Parameter(value.clone(), value.is_floating_point()))
        for name, cell in zip(names[1], self._cells, strict=True):
            home, last = self._home(name)
            home.register_buffer(last, cell.value)

    def _home(self, name: str) -> tuple[nn.Module, str]:
        *path, last = name.split(".")
        home: nn.Module = self
        for part in path:
            if not hasattr(home, part):
                home.add_module(part, nn.Module())
            home = home.get_submodule(part)
        return home, last

    def _forward(self, *args: torch.Tensor) -> Any:
        """Run the program."""
        params, state = dict(self.named_parameters()), dict(self.named_buffers())
        for cell, name in zip(self._cells, self._names[1], strict=True):
            cell.value = state[name]
        record = with_tensors(self._template, [params[name] for name in self._names[0]])
        return self._run(record, self._state, *args)


def _named(run: Callable[..., Any], inputs: Sequence[str]) -> Callable[..., Any]:
    """Return a function that says what its inputs are called, which torch's export reads."""

    def forward(*args: torch.Tensor) -> Any:
        return run(*args)

    kind = InputParameter.POSITIONAL_OR_KEYWORD
    vars(forward)["__signature__"] = Signature([InputParameter(n, kind) for n in inputs])
    return forward


def torch_program(
    name: str,
    program: Program,
    parameters: Sequence[Parameter],
    head: Span,
    values: tuple[Any, Any],
    names: tuple[Sequence[str], Sequence[str]],
    examples: Mapping[str, Any],
) -> ExportedProgram:
    """Return a program as torch's export records it at example arguments, its sizes as open as
    torch finds them. Raises RunError where it is no graph."""
    for parameter in parameters:
        if not isinstance(parameter.type, TensorType):
            why = f"`{parameter.name}` is {show(parameter.type)}, and a graph takes tensors"
            raise RunError(NoGraph(parameter.span, name, why))
    result = program.type.result
    if not _is_of_tensors(result):
        raise RunError(
            NoGraph(head, name, f"its result is {show(result)}, and a graph gives tensors")
        )
    first = next(iter(examples.values()), None)
    device = first.device if isinstance(first, torch.Tensor) else torch.device("cpu")
    free = tuple(dict.fromkeys(range(v.dim()), torch.export.Dim.AUTO) for v in examples.values())
    with options(lowering="torch", measure=False), torch.no_grad():
        module = _Module(program, device, *values, names, [p.name for p in parameters])
        try:
            return torch.export.export(
                module, tuple(examples.values()), dynamic_shapes=free, strict=False
            )
        except RunError as error:
            (found,) = error.diagnostics
            why = "a graph decides nothing by values"
            if not any("data-dependent" in note for note in found.notes):
                raise
            place = head if found.primary is None else found.primary.span
            raise RunError(NoGraph(place, name, why)) from None


def _is_of_tensors(ty: Type) -> bool:
    pending = [ty]
    while pending:
        match pending.pop():
            case TensorType():
                pass
            case TupleType(fields):
                pending += fields
            case _:
                return False
    return True
