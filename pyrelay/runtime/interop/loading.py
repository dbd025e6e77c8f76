"""From the bytes of a saved model to the callable. Nothing in the file is trusted: the program is
parsed and verified like any other, and weights must fit its types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

from ...analysis.solved_sizes import undetermined_sizes_of
from ...diagnostics.catalogue.model import DamagedModel, MissingOperators
from ...diagnostics.diagnostic import CheckError, RelayError
from ...diagnostics.source import NOWHERE, SourceFile, Span
from ...ir.op import Op
from ...ir.traverse import Steps, run
from ...ir.types import FnType, RefType, TensorType, TupleType, Type, open_shapes, show
from ...ir.verify import Stage, VerifyError, verify
from ...operators.table import BY_NAME
from ...text.parser import parse_module
from ...translate.source.scope import MISSING
from ...translate.types import number_places
from ..border.binder import Binder
from ..border.devices import CPU
from ..border.places import Parameter
from ..compile.program import Program
from ..entries.call_signature import Argument, Interface, read_plain
from ..entries.open_program import EvalProgram, OpenProgram
from ..values.representation import NO_DATA
from ..values.values import Cell
from .saved_data import restored
from .saving import Saved, unpack

if TYPE_CHECKING:
    import torch


def load(
    data: bytes, path: str, device: torch.device, operators: Mapping[str, Op]
) -> tuple[EvalProgram, Any, Any]:
    """Return the model in the bytes of a file: its program, and its parameters and state on a
    device. Raises CheckError."""
    return _Loader(path, unpack(data, path), device).model(operators)


@final
class _Loader:
    """Builds the model of one file."""

    def __init__(self, path: str, saved: Saved, device: torch.device) -> None:
        self._path: Final = path
        self._saved: Final = saved
        self._device: Final = device

    def model(self, operators: Mapping[str, Op]) -> tuple[EvalProgram, Any, Any]:
        """Return the program, the parameters and the state. Raises CheckError."""
        manifest = self._saved.manifest
        try:
            entry, own = str(manifest["entry"]), [str(n) for n in manifest["operators"]]
            interface = _interface(manifest)
            _ = interface.signature  # refuses names that Python would
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            self._refuse(f"its manifest is not of this version ({error})")
        missing = tuple(n for n in own if n not in operators)
        if missing:
            raise CheckError(MissingOperators(self._path, missing))
        opened = self._opened(entry, {**BY_NAME, **{n: operators[n] for n in own}})
        program = self._program(opened)
        types = self._types(program, interface)
        declared = tuple(p.ty for p in opened.parameters)
        parameters = _declared(interface, types, declared, program.type.result, self._path)
        params = self._tree(interface.params, types[0], interface.name)
        state = self._tree(interface.state, types[1], interface.name)
        if len(self._saved.tensors) != len(interface.params) + len(interface.state):
            self._refuse("it holds tensors that the model has not")
        head = parameters[0].span
        return EvalProgram(interface, program, parameters, head, opened), params, state

    def _opened(self, entry: str, operators: Mapping[str, Op]) -> OpenProgram:
        try:
            module = parse_module(self._saved.program, self._path, operators=operators)
            has_entry = entry in module.functions
            is_open = has_entry and OpenProgram(module, entry, NO_DATA).is_open
            verify(module, Stage.TRANSLATED if is_open else Stage.TYPED)
        except RelayError as error:
            self._refuse(f"its program cannot be read ({error.diagnostics[0].title})")
        except VerifyError as error:
            self._refuse(f"its program is not well-formed ({error})")
        if not has_entry:
            self._refuse(f"its program has no function `{entry}`")
        unknown = () if is_open else map(undetermined_sizes_of, module.functions.values())
        for size in chain.from_iterable(unknown):
            self._refuse(f"nothing shows the size `{size.name}`, which its program needs")
        try:
            data = restored(self._saved.manifest["data"], module)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            self._refuse(f"its manifest does not describe its data types ({error})")
        return OpenProgram(module, entry, data)

    def _program(self, opened: OpenProgram) -> Program:
        if not opened.is_open:
            return Program.of_typed(opened.module, opened.entry, opened.data)
        try:
            return opened.first()
        except RelayError as error:
            self._refuse(f"its program is not right ({error.diagnostics[0].title})")

    def _types(self, program: Program, interface: Interface) -> tuple[Type, ...]:
        """Return the types of the entry's parameters, the weights' first."""
        ty = program.function.ty
        types = ty.params if isinstance(ty, FnType) else ()
        if len(types) != 2 + len(interface.arguments):
            self._refuse("its program takes other arguments than its manifest says")
        return types

    def _tree(self, names: tuple[str, ...], ty: Type, model: str) -> Any:
        """Return the nested tuple of the weights with these names."""
        missing = [n for n in names if n not in self._saved.tensors]
        if missing:
            self._refuse(f"it does not hold `{missing[0]}`")
        binder = Binder(model, CPU)
        weights = iter(names)

        def build(part: Type) -> Steps[Any]:
            match part:
                case TupleType(fields):
                    found: list[Any] = []
                    for field in fields:
                        inside = yield build(field)
                        found.append(inside)
                    return tuple(found)
                case RefType(TensorType() as value):
                    return Cell(self._weight(binder, next(weights, None), value))
                case TensorType():
                    return self._weight(binder, next(weights, None), part)
                case _:
                    self._refuse("its program takes no weights")

        tree = run(build(ty))
        if next(weights, None) is not None:
            self._refuse("it holds more weights than its program takes")
        return tree

    def _weight(self, binder: Binder, name: str | None, ty: TensorType) -> torch.Tensor:
        if name is None:
            self._refuse("it holds fewer weights than its program takes")
        value = self._saved.tensors[name]
        try:
            binder.convert(Parameter(name, ty, NOWHERE), value, ty)
        except RelayError as error:
            self._refuse(f"a weight does not fit its program ({error.diagnostics[0].title})")
        return value.to(self._device)

    def _refuse(self, why: str) -> NoReturn:
        raise CheckError(DamagedModel(self._path, why)) from None


def _declared(
    interface: Interface,
    types: Sequence[Type],
    declared: Sequence[Type | None],
    result: Type,
    path: str,
) -> tuple[Parameter, ...]:
    """Return the parameters of a loaded model; what shows them in messages is its signature in the
    user's notation, since the file that declares them is not there."""
    parts = [f"{interface.name}("]
    places = [(0, len(interface.name))] * 2
    open_ = [None if ty is None or not open_shapes(ty) else ty for ty in declared]
    shown = [o or ty for o, ty in zip(open_, types, strict=True)]
    for index, (argument, ty) in enumerate(zip(interface.arguments, shown[2:], strict=True)):
        parts.append(", " if index else "")
        default = "" if argument.default is MISSING else f" = {argument.default!r}"
        start = sum(map(len, parts))
        parts.append(f"{argument.name}: {show(ty)}{default}")
        places.append((start, start + len(parts[-1])))
    file = SourceFile(path, f"{''.join(parts)}) -> {show(result)}\n")
    names = ("params", "state", *(a.name for a in interface.arguments))
    return tuple(
        Parameter(name, ty, Span(file, *place), declared=each)
        for name, ty, place, each in zip(names, types, places, open_, strict=True)
    )


def _interface(manifest: Mapping[str, Any]) -> Interface:
    """Return the interface that a manifest describes; what is not as it should be is a ValueError,
    TypeError, AttributeError or KeyError."""
    result = manifest["result"]
    return Interface(
        str(manifest["name"]),
        tuple(_argument(a) for a in manifest["arguments"]),
        number_places.restored(result),
        {str(n): str(v) for n, v in manifest["hyper"].items()},
        _names(manifest["params"]),
        _names(manifest["state"]),
    )


def _names(values: list[Any]) -> tuple[str, ...]:
    return tuple(str(v) for v in values)


def _argument(written: Mapping[str, Any]) -> Argument:
    default = written.get("default", MISSING)
    return Argument(str(written["name"]), read_plain(default), written.get("keyword_only") is True)
