"""Region functions as Python callables: the first run at some sizes tells what the others do.

A region (in the form of `kernels.fusion.segments`) calls kernels and functions that call torch. Its
first run at some sizes calls them one after another and notes what each kernel prepared; from then
on a `Tape` does the same without looking at any operand but the region's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeAlias, final

import torch

from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, Tuple, TupleGet, Var, type_of
from ...ir.types import TupleType
from ...kernels.calling import Sizes
from ...kernels.fusion.nodes import mentioned
from ...kernels.memory import Plan
from ...kernels.reading import straight_line
from ...operators.host.sizes import size
from .launch import MOST_SHAPES, KernelCall, key_of
from .prepare import Prepared, Storage
from .sharing import is_shared
from .tape import ALIGNMENT, CallStep, KernelStep, Slot, Step, Tape

Callee: TypeAlias = Callable[..., Any]


def can_be_taped(region: Function) -> bool:
    """Return whether a region does nothing but what `RegionCall` knows."""
    if any(isinstance(type_of(p), TupleType) for p in region.params):
        return False
    bindings, end = straight_line(region.body)
    return isinstance(end, Var) and all(_is_known(b.value) for b in bindings)


def _is_known(value: Expr) -> bool:
    match value:
        case Call(GlobalVar(), args) | Tuple(args):
            return all(isinstance(a, Var) for a in args)
        case Call(callee):
            return callee is size
        case TupleGet(whole):
            return isinstance(whole, Var)
        case _:
            return False


@final
class RegionCall:
    """A region function of a program on one device.

    `callee` gives the kernels and functions that it calls, `plain` does the same as calls of these,
    and does it where a parameter that the region writes to (`written`) lies in the storage of
    another. Raises what they raise.
    """

    def __init__(
        self,
        function: Function,
        plan: Plan,
        callee: Callable[[str], Callee],
        plain: Callee,
        device: torch.device,
        written: Sequence[int],
    ) -> None:
        self.function: Final = function
        self._plan: Final = plan
        self._callee: Final = callee
        self.plain: Final = plain
        self._device: Final = device
        self._written: Final = tuple(written)
        self._types: Final = [type_of(p) for p in function.params]
        self._tapes: Final[dict[tuple[Any, ...], Tape]] = {}
        self._apart: tuple[Any, ...] = ()
        """The sizes and addresses of arguments that were last found to share nothing."""

    def __call__(self, *args: Any) -> Any:
        """Return the result of the region."""
        key = key_of(args, self._types)
        if self._written and self._is_shared(key, args):
            return self.plain(*args)
        tape = self._tapes.get(key)
        if tape is not None:
            return tape.run(args)
        first = _FirstRun(self.function, self._callee)
        result = first.run(args)
        if len(self._tapes) >= MOST_SHAPES:
            del self._tapes[next(iter(self._tapes))]
        self._tapes[key] = _Taping(self.function, self._plan, first).tape(self._device)
        return result

    def _is_shared(self, key: tuple[Any, ...], args: Sequence[Any]) -> bool:
        lying = (key, [a.data_ptr() for a in args if isinstance(a, torch.Tensor)])
        if lying == self._apart:
            return False
        if is_shared(args, self._written):
            return True
        self._apart = lying
        return False


@final
class _FirstRun:
    """A run that calls what the region calls, and notes what the tape needs to know."""

    def __init__(self, function: Function, callee: Callable[[str], Callee]) -> None:
        self.function: Final = function
        self.bindings, self.end = straight_line(function.body)
        self._callee: Final = callee
        self.kernels: Final[dict[Var, Prepared]] = {}
        self.functions: Final[dict[Var, Callee]] = {}
        self.sizes: Final[dict[Var, int]] = {}
        self.strides: Final[dict[Var, tuple[int, ...]]] = {}

    def run(self, args: Sequence[Any]) -> Any:
        """Return the result of the region."""
        known: dict[Expr, Any] = dict(zip(self.function.params, args, strict=True))
        sizes = Sizes((type_of(p), a) for p, a in zip(self.function.params, args, strict=True))
        dead = deaths(self.bindings, self.end)
        for place, binding in enumerate(self.bindings):
            value = self._value(binding, known, sizes)
            known[binding.var] = value
            if isinstance(value, torch.Tensor):
                self.strides[binding.var] = value.stride()
            for var in dead[place]:
                del known[var]
        return known[self.end]

    def _value(self, binding: Binding, known: Mapping[Expr, Any], sizes: Sizes) -> Any:
        match binding.value:
            case Call(GlobalVar(name), args):
                values = [known[a] for a in args]
                callee = self._callee(name)
                prepared = callee.prepared(values) if isinstance(callee, KernelCall) else None
                if prepared is None or prepared.in_torch:
                    self.functions[binding.var] = callee
                else:
                    self.kernels[binding.var] = prepared
                return callee(*values)
            case Tuple(fields):
                return tuple([known[f] for f in fields])
            case TupleGet(whole, field):
                return known[whole][field]
            case Call(attrs=attrs):
                found = self.sizes[binding.var] = sizes.value(attrs["dim"])
                return found
            case _:
                raise AssertionError(binding.value)  # `can_be_taped` has looked


@final
class _Taping:
    """The tape of a region, made of what its first run noted."""

    def __init__(self, function: Function, plan: Plan, first: _FirstRun) -> None:
        self._plan: Final = plan
        self._first: Final = first
        self._numbers: Final[dict[Var, int]] = {p: i for i, p in enumerate(function.params)}
        self._values = len(function.params)
        self._bytes = 0
        self._needed: Final[set[Expr]] = {first.end}
        """What Python must know: operands of calls, fields of tuples, the result."""
        self._read: Final[set[Expr]] = set()
        """What kernels read."""
        self._parts: Final[dict[Expr, dict[int, Var]]] = {}
        """The names of what kernels give in tuples."""
        for binding in first.bindings:
            self._look(binding.var, binding.value)
        self._offsets: Final = self._divided()
        self._slots_end: Final = self._bytes

    def tape(self, device: torch.device) -> Tape:
        """Return the tape."""
        dead = deaths(self._first.bindings, self._first.end)
        steps: list[Step] = []
        for place, binding in enumerate(self._first.bindings):
            gone = tuple(self._numbers[v] for v in dead[place] if v in self._numbers)
            if binding.var in self._first.kernels:
                steps.append(self._kernel(binding, gone))
            elif not self._is_part(binding.value):
                steps.append(self._call(binding, gone))
        assert isinstance(self._first.end, Var)
        result = self._numbers[self._first.end]
        return Tape(tuple(steps), self._values, result, self._bytes, device)

    def _look(self, var: Var, value: Expr) -> None:
        match value:
            case TupleGet(whole, field) if whole in self._first.kernels:
                self._parts.setdefault(whole, {})[field] = var
            case _ if var in self._first.kernels:
                self._read.update(mentioned(value))
            case _:
                self._needed.update(mentioned(value))

    def _is_part(self, value: Expr) -> bool:
        return isinstance(value, TupleGet) and value.value in self._first.kernels

    def _named(self, var: Var) -> dict[int, Var]:
        """Return the variables that hold the storage of a kernel's call, by its position."""
        results = self._first.kernels[var].results
        if isinstance(results, int):
            return {results: var}
        return {results[field]: part for field, part in self._parts.get(var, {}).items()}

    def _divided(self) -> dict[Var, int]:
        """Divide the arena; give where the values begin that have a slot."""
        slots: dict[int, int] = {}
        placed: dict[Var, int] = {}
        for var, prepared in self._first.kernels.items():
            if not isinstance(prepared.results, int) and var in self._needed:
                continue  # the tuple itself is used, so its parts may live on with it
            for position, part in self._named(var).items():
                slot = self._plan.slots.get(part)
                if slot is not None:
                    room = prepared.storage[position].bytes
                    slots[slot] = max(slots.get(slot, 0), room)
                    placed[part] = slot
        begins: dict[int, int] = {}
        for slot, room in slots.items():
            begins[slot] = self._bytes
            self._bytes += _aligned(room)
        return {var: begins[slot] for var, slot in placed.items()}

    def _kernel(self, binding: Binding, gone: tuple[int, ...]) -> KernelStep:
        prepared = self._first.kernels[binding.var]
        named = self._named(binding.var)
        numbers = [self._number(v) for v in mentioned_in_order(binding.value)]
        operands = len(numbers)
        slots: list[Slot] = []
        fresh: list[tuple[int, Storage]] = []
        results = prepared.results
        whole = binding.var in self._needed and not isinstance(results, int)
        scratch = self._slots_end
        for position, storage in enumerate(prepared.storage):
            var = named.get(position)
            number = self._number(var)
            numbers.append(number)
            if var in self._offsets:
                slots.append(Slot(number, self._offsets[var], storage, var in self._needed))
            elif var is not None or (whole and storage.result is not None):
                fresh.append((number, storage))
            else:
                slots.append(Slot(number, scratch, storage, is_tensor=False))
                scratch += _aligned(storage.bytes)
        self._bytes = max(self._bytes, scratch)
        launches = tuple(launch.placed(numbers) for launch in prepared.launches)
        fields = () if isinstance(results, int) else tuple(numbers[operands + r] for r in results)
        tuple_ = (self._number(binding.var), fields) if whole else None
        return KernelStep(launches, tuple(slots), tuple(fresh), tuple_, gone)

    def _call(self, binding: Binding, gone: tuple[int, ...]) -> CallStep:
        function, operands = self._called(binding)
        numbers = tuple(map(self._number, operands))
        strides = self._first.strides.get(binding.var) if binding.var in self._read else None
        return CallStep(function, numbers, self._number(binding.var), strides, gone)

    def _called(self, binding: Binding) -> tuple[Callee, Sequence[Var]]:
        match binding.value:
            case TupleGet(whole, field):
                assert isinstance(whole, Var)
                return itemgetter(field), (whole,)
            case Tuple():
                return _tuple_of, mentioned_in_order(binding.value)
            case _ if binding.var in self._first.sizes:
                return partial(int, self._first.sizes[binding.var]), ()
            case _:
                return self._first.functions[binding.var], mentioned_in_order(binding.value)

    def _number(self, var: Var | None) -> int:
        """Return the number of a value, a new one for one without a name."""
        if var is not None and var in self._numbers:
            return self._numbers[var]
        number = self._values
        self._values += 1
        if var is not None:
            self._numbers[var] = number
        return number


def mentioned_in_order(value: Expr) -> list[Var]:
    """Return the operands of a call, or the fields of a tuple, which are variables."""
    assert isinstance(value, Call | Tuple)
    operands = value.args if isinstance(value, Call) else value.fields
    return [o for o in operands if isinstance(o, Var)]


def deaths(bindings: Sequence[Binding], end: Expr) -> list[list[Var]]:
    """Return the variables that are used for the last time by each binding, or never after it."""
    last: dict[Var, int] = {}
    for place, binding in enumerate(bindings):
        last[binding.var] = place
        last.update(dict.fromkeys(mentioned(binding.value), place))
    found: list[list[Var]] = [[] for _ in bindings]
    for var, place in last.items():
        if var != end:
            found[place].append(var)
    return found


def _tuple_of(*fields: Any) -> tuple[Any, ...]:
    return fields


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT
