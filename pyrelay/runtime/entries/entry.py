"""Entries: a program with a signature, ready to be called with a script's values.

An entry checks and converts arguments once per signature (shapes, dtypes, devices), keeps what it
found as a plan, and from then on a call is one look-up and one call of the compiled program.
"""

from __future__ import annotations

from bisect import bisect_left as bisect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import torch

from ...dataclass import dataclass
from ...diagnostics.diagnostic import RunError
from ...ir.dims import Dim
from ...ir.traverse import spine
from ...ir.types import (
    ITERABLE,
    RefType,
    SizeType,
    TensorType,
    Type,
    dim_names,
    is_float,
    known_dtype,
    subtypes,
)
from ...lower_torch.constants import torch_dtype
from ...operators.host.conversions import IntegerOverflow
from ...translate.types.number_places import Numbers
from ..border.arguments import Look, bind
from ..border.autograd import requires_grad, unrecorded
from ..border.binder import Binder
from ..border.devices import CPU, Holder, common_device, one_device
from ..border.failure import located
from ..border.fast_flatten import Key, Reader, first_leaf, has_only_numbers, key_reader, leaf_reader
from ..border.places import Parameter
from ..border.remembered import Known
from ..border.results import Converter, Exports, Owner, Reference, converter, separate
from ..border.schema import Data, Elements, Leaf, Maybe, Schema, has_data
from ..border.stream import as_raised
from ..border.value_types import Definitions, TypesOfValues, definitions_in, type_vars_of
from ..compile.derived import is_joinable
from ..compile.lowerings import Executable
from ..values.structure import lent, tensor_ids
from ..values.values import Cell
from .autograd_function import Joined, NodeMaker

if TYPE_CHECKING:
    from ..compile.program import Program
    from ..host import CompiledProgram

Finish: TypeAlias = "Callable[..., Any]"
"""From a result of host code, the arguments that are no data, and the tensors of each argument that
is, to what the caller gets."""

_MAX_CALLS: Final = 4096
_is_view: Final = torch.Tensor._is_view  # noqa: SLF001  torch has no public name for it


@final
@dataclass(frozen=True, slots=True)
class _Call:
    """How one signature of arguments is called: conversions (None: none needed) and the device."""

    convert: Callable[[Sequence[Any]], list[Any]] | None
    device: torch.device
    is_direct: bool
    """Whether nothing is converted but numbers to tensors of floats."""


@final
class Entry:
    """A program and how scripts call it."""

    def __init__(
        self,
        name: str,
        program: Program,
        parameters: tuple[Parameter, ...],
        numbers: Numbers,
        exports: Exports | None = None,
        *,
        joins: bool = False,
        models: int = 0,
        definitions: Definitions | None = None,
    ) -> None:
        """`numbers` says where in the result numbers go back as Python's own; `joins` that calls
        join torch's graph, if they can; `models` is the number of leading parameters that are parts
        of models; `definitions` knows more data types than the program mentions."""
        self.name: Final = name
        self.program: Final = program
        self.parameters: Final = parameters
        self._joined: Final = Joined(name, program) if joins and is_joinable(program) else None
        self._numbers: Final = numbers
        self._assumptions: Final = program.function.assumptions
        self._exports: Final = exports or {}
        self._finish: Final[dict[bool, Converter]] = {}
        self._schema: Final = Schema(program.typed.adts, program.data)
        self._plans: Final = [self._schema.plan(p.type, p.numbers) for p in parameters]
        is_open = bool(type_vars_of(p.type for p in parameters))
        known = definitions or definitions_in(program.typed.adts, program.data)
        self._types: Final = TypesOfValues(known, Dim.of) if is_open else None
        self._data: Final = is_open or any(map(has_data, self._plans[models:]))
        """Whether arguments are looked into at each call."""
        self._walked: Final = [isinstance(p, Data | Elements | Maybe) for p in self._plans]
        self._looked: Final = [
            not p.is_model and i >= models and not isinstance(p.type, TensorType)
            for i, p in enumerate(parameters)
        ]
        """Whether an argument is more than a tensor or a number."""
        self._calls: Final[dict[Key, _Call]] = {}
        self._read_key: Final = key_reader(tuple(p.type for p in parameters), models)
        self._sizes_matter: Final = any(_has(SizeType, p.type) for p in parameters)
        self._models: Final = models
        self._holders: Final = [
            Holder("the model" if i < models else f"`{p.name}`", p.span)
            for i, p in enumerate(parameters)
        ]
        self._given: Final = leaf_reader(tuple(p.type for p in parameters))
        self._made: Reader | None = None
        result = program.type.result
        own = [p for p in parameters[models:] if not p.is_model]
        self._cells: Final = any(_has(RefType, p.type) for p in own)
        self._are_models: Final = any(p.is_model for p in parameters)
        self._lend: Final = [_has(RefType, p.type) for p in parameters]
        """Whether an argument has cells in it, such as those of models."""
        self._is_closed: Final = not is_open and not any(_has(RefType, p.type) for p in parameters)
        """Whether the check of arguments compares the device of every tensor in them."""
        self._streams: Final = any(p.type == ITERABLE for p in parameters)
        if numbers is None and has_only_numbers(result) and not self._streams:
            self._made = leaf_reader((result,))

    def __call__(self, values: Sequence[Any]) -> Any:
        """Run the program on one value per parameter, models' parts included."""
        return as_raised(self._run, values) if self._streams else self._run(values)

    def _run(self, values: Sequence[Any]) -> Any:
        if self._data:
            return self._run_data(values)
        call = self._call(values)
        host = values if call.convert is None else call.convert(values)
        try:
            if self._joined is not None and self.is_joined(host):
                return self._join(self._joined, call.device, host)
            return unrecorded(self._value, self.program.compiled(call.device), host, call.device)
        finally:
            if self._cells:
                separate(values, host)

    def _value(self, compiled: Executable, host: Sequence[Any], device: torch.device) -> Any:
        if self._made is not None and compiled.gives_fresh:
            return compiled(*host)
        given = self._lent(host)
        result = compiled(*host)
        return self.finish(result, self._lent(host, given), Owner(device, compiled.constants))

    def _lent(self, host: Sequence[Any], before: Sequence[Any] = ()) -> Sequence[Any]:
        """Return values with the parameters of models, which are in cells that a call changes,
        behind those `before` the call."""
        return [*before, *lent(host)] if True in self._lend else host

    def _beside_models(self, host: Sequence[Any]) -> Sequence[Any]:
        """Return the values that are no models: the parameters of those are in cells."""
        if not self._are_models:
            return host
        return [v for v, p in zip(host, self.parameters, strict=True) if not p.is_model]

    def _run_data(self, values: Sequence[Any]) -> Any:
        """Run the program on arguments of which some are data: each call walks over them."""
        binder, host = self._bound_data(values)
        device = binder.device
        # What the walk over data has met is not looked for again.
        looked = zip(host, self._walked, self._lend, strict=True)
        rest = [v for v, walked, lends in looked if lends or not walked]
        given = self._lent(rest)
        if self._joined is not None and requires_grad((*binder.leaves, *rest)):
            return self._join(self._joined, device, host)
        compiled = self.program.compiled(device)
        try:
            result = unrecorded(compiled, *host)
            if self._made is not None and compiled.gives_fresh:
                return result
            owner = Owner(device, compiled.constants, (Known(tensors=binder.leaves),))
            return unrecorded(self.finish, result, self._lent(rest, given), owner)
        finally:
            if self._cells:
                separate(values, host)

    @property
    def joins(self) -> bool:
        """Whether a call may join torch's graph."""
        return self._joined is not None

    def is_joined(self, host: Sequence[Any]) -> bool:
        """Return whether a call with host values joins torch's graph."""
        return self._joined is not None and requires_grad(self._beside_models(host))

    def node_maker(
        self, device: torch.device, host: Sequence[Any], *, is_settled: bool = False
    ) -> NodeMaker | None:
        """Return the function from host values like these to the result, as a node of torch's
        graph; None where more is to be done than to call the program. It looks no more at the
        values if it `is_settled`; None then where there is no such function."""
        if self._joined is None or self._numbers is not None:
            return None
        return self._joined.node_maker(device, host, is_settled=is_settled)

    @property
    def models(self) -> int:
        """The number of leading parameters that are parts of models, two for each."""
        return self._models

    @cached_property
    def is_direct(self) -> bool:
        """Whether all arguments are tensors, numbers and models, or data without sizes that other
        arguments show."""
        looked = [p.type for p, looked in zip(self.parameters, self._looked, strict=True) if looked]
        return self._types is None and not any(map(self._is_walked_anew, looked))

    def _is_walked_anew(self, ty: Type) -> bool:
        """Return whether each call must walk over the values of a type: they show sizes, or are no
        data, or may be written to."""
        if dim_names(ty) or ty == ITERABLE or _has(RefType, ty):
            return True
        return not self._schema.has_only_data(ty)

    def look(self, place: int, device: torch.device) -> Look | None:
        """Return the check of an argument in direct calls on a device; None where it is a tensor, a
        number or a part of a model."""
        if not self._looked[place]:
            return None
        return Look(self.name, self.parameters[place], self._schema, device)

    def tensors_in(self, place: int) -> int | None:
        """Return how many tensors are in an argument that is an instance of one class with nothing
        but tensors of some dims in it; None for any other argument."""
        plan = self._plans[place]
        cases = list(plan.cases.values()) if isinstance(plan, Data) else []
        if len(cases) != 1:
            return None
        plans = cases[0].plans
        return (
            len(plans) if all(isinstance(p, Leaf) and p.fixed is not None for p in plans) else None
        )

    def direct_device(self, values: Sequence[Any]) -> torch.device | None:
        """Return the device of a call with arguments that the program takes as they are, but for
        data, and numbers in the place of tensors of floats; None for other arguments. Raises
        RunError for what is no argument."""
        if not self.is_direct:
            return None
        binder, host = self._bound_data(values)
        triples = zip(values, host, self._looked, strict=True)
        changed = [v for v, made, looked in triples if made is not v and not looked]
        return binder.device if all(isinstance(v, int | float) for v in changed) else None

    @cached_property
    def gives_tensors(self) -> bool:
        """Whether results have nothing but tensors in them, as host code has them too."""
        leaves = subtypes(self.program.type.result)
        return self._made is not None and not any(map(_is_python_number, leaves))

    def finishing(self, compiled: CompiledProgram, device: torch.device) -> Finish | None:
        """Return the conversion of a result for the caller; None where there is nothing to
        convert."""
        if self._made is not None and compiled.gives_fresh:
            return None
        ty, constants = self.program.type.result, compiled.constants

        def finish_any(result: Any, host: Sequence[Any], *inside: Known) -> Any:
            return self.finish(result, host, Owner(device, constants, inside))

        if self._numbers is not None or not _is_python_number(ty):
            return finish_any
        dtype = torch.int64 if isinstance(ty, SizeType) else torch_dtype(known_dtype(ty))
        made = torch.empty((), dtype=dtype, device=device).new_full  # torch.scalar_tensor is slower

        def finish(result: Any, host: Sequence[Any], *inside: Known) -> Any:
            if result.__class__ is not int and result.__class__ is not bool:
                return finish_any(result, host, *inside)
            return made((), result)

        return finish

    def interpret(self, values: Sequence[Any]) -> Any:
        """Run the program in the reference evaluator."""
        return as_raised(self._interpret, values)

    def _interpret(self, values: Sequence[Any]) -> Any:
        call = self._call(values)
        host = values if call.convert is None else call.convert(values)
        try:
            given = self._lent(host)
            result = self.program.interpret(host, call.device)
            return self.finish(result, self._lent(host, given), Owner(call.device, {}))
        finally:
            if self._cells:
                separate(values, host)

    def finish(
        self,
        result: Any,
        host: Sequence[Any],
        owner: Owner,
        *,
        joined: bool = False,
    ) -> Any:
        """Return a program's result as the caller gets it: fresh, in the annotated form. Arguments
        whose tensors `owner` knows need not be in `host`."""
        if self._made is not None and self._is_fresh(self._made((result,)), host, owner):
            return result
        finish = self._finish.get(joined)
        if finish is None:
            ty, numbers = self.program.type.result, self._numbers
            finish = converter(ty, numbers, self._exports, self._schema, joined=joined)
            self._finish[joined] = finish
        try:
            return finish(result, host, owner)
        except IntegerOverflow as error:
            _, end = spine(self.program.function.body)
            raise located(error, end.span) from None

    def _is_fresh(self, leaves: list[Any], host: Sequence[Any], owner: Owner) -> bool:
        """Return whether all results are tensors that certainly share storage with nothing."""
        try:
            if True in map(_is_view, leaves):
                return False
        except TypeError:  # a number where a tensor may be
            return False
        made = set(map(id, leaves))
        is_nested = True in self._lend or True in self._looked or True in self._walked
        given = tensor_ids(host) if is_nested else map(id, self._given(host))
        return made.isdisjoint(given) and not owner.has_any(made)

    def _join(self, joined: Joined, device: torch.device, host: Sequence[Any]) -> Any:
        given = self._lent(host)

        def finish(value: Any, compiled: Executable) -> Any:
            owner = Owner(device, compiled.constants)
            return self.finish(value, self._lent(host, given), owner, joined=True)

        return joined(device, host, finish)

    def _call(self, values: Sequence[Any]) -> _Call:
        if self._streams or self._data:
            return self._make_call(values)  # each call reads values of its own
        key = self._key(values)
        call = self._calls.get(key)
        if call is None:
            call = self._make_call(values)
            if len(self._calls) >= _MAX_CALLS:
                self._calls.clear()
            self._calls[key] = call
        return call

    def _key(self, values: Sequence[Any]) -> Key:
        """Return the key of the plan of a call."""
        if self._read_key is not None:
            try:
                return self._read_key(values)
            except AttributeError:  # no tensor where one belongs: the plan is to convert it, or not
                pass
        lead = self._models
        return (*[_model_key(v) for v in values[:lead]], *[_key(v) for v in values[lead:]])

    def _make_call(self, values: Sequence[Any]) -> _Call:
        device = self._device_of(values)
        converted = self._bind(values, device)
        changed = {
            place: (made, value)
            for place, (made, value) in enumerate(zip(converted, values, strict=True))
            if made is not value
        }
        are_numbers = all(isinstance(value, int | float) for _, value in changed.values())
        if self._sizes_matter or self._data or not are_numbers:
            return _Call(lambda given: self._bind(given, device), device, is_direct=False)
        if not changed:
            return _Call(None, device, is_direct=True)
        dtypes = {place: made.dtype for place, (made, _) in changed.items()}

        def convert(given: Sequence[Any]) -> list[Any]:
            host = list(given)
            with suppress(OverflowError, RuntimeError):  # the number may be beyond the dtype
                for place, dtype in dtypes.items():
                    host[place] = torch.scalar_tensor(host[place], dtype=dtype, device=device)
                return host
            return self._bind(given, device)

        return _Call(convert, device, is_direct=True)

    def _device_of(self, values: Sequence[Any]) -> torch.device:
        if not self._streams:
            return one_device(self.name, self._holders, self._shortened(values))
        kept = [i for i, p in enumerate(self.parameters) if p.type != ITERABLE]
        holders = [self._holders[i] for i in kept]
        return one_device(self.name, holders, [values[i] for i in kept])

    def _shortened(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return arguments with the tensors of remembered instances in their place."""
        shortened = list(values)
        for place, plan in enumerate(self._plans):
            known = plan.remembered.get(values[place]) if isinstance(plan, Data) else None
            if known is not None:
                shortened[place] = known.given
        return shortened

    def _bound_data(self, values: Sequence[Any]) -> tuple[Binder, list[Any]]:
        """Bind arguments of which some are data. Where other arguments determine the device, data
        are walked once: their tensors are compared with it then."""
        walked = zip(values, self._walked, self.parameters, strict=True)
        rest = [v for v, is_data, p in walked if not is_data and p.type != ITERABLE]
        device = common_device(rest)
        if device is None and self._is_closed:
            # A tensor elsewhere does not fit, and only then is it looked for.
            with suppress(RunError):
                return self._bound(values, CPU)
        if device is None:
            return self._bound(values, self._device_of(values))
        try:
            return self._bound(values, device)
        except RunError:
            self._device_of(values)  # the mistake may be that arguments are on several devices
            raise

    def _bind(self, values: Sequence[Any], device: torch.device) -> list[Any]:
        return self._bound(values, device)[1]

    def _bound(self, values: Sequence[Any], device: torch.device) -> tuple[Binder, list[Any]]:
        binder = Binder(self.name, device, self._schema, self._types)
        given = zip(self.parameters, values, self._plans, strict=True)
        found = [bind(binder, parameter, value, plan) for parameter, value, plan in given]
        binder.finish(self._assumptions)
        return binder, found


def _model_key(tree: Any) -> Any:
    """Return the key of a model's part in plans: its parameters have the shapes they were made
    with, and one dtype and device."""
    leaf = first_leaf(tree)
    return (leaf.dtype, leaf.device) if isinstance(leaf, torch.Tensor) else None


def _key(value: Any) -> Any:
    """Return the key of a plan: of a tensor its dtype, shape, device and layout; else the type."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.shape, value.device, value.layout)
    if type(value) is tuple:
        return tuple([_key(v) for v in value])
    if hasattr(value, "shape"):
        return (type(value), value.shape, str(value.dtype))
    if isinstance(value, Reference):
        return (Reference, _key(value.value))
    if isinstance(value, Cell):  # of a model: its parameters have one dtype and device
        return _model_key(value.value)
    if type(value) is int:  # dtypes have integers up to different sizes
        return (int, value < 0, bisect(_BITS, (~value if value < 0 else value).bit_length()))
    return type(value)


_BITS: Final = (7, 8, 15, 16, 31, 32, 63, 64)
"""The bits of the largest integers of dtypes."""


def _is_python_number(ty: Type) -> bool:
    """Return whether host code has a number of Python's for a value of a type."""
    if isinstance(ty, SizeType):
        return True
    return isinstance(ty, TensorType) and not ty.shape and not is_float(ty.dtype)


def _has(kind: type[Type], ty: Type) -> bool:
    return any(isinstance(part, kind) for part in subtypes(ty))
