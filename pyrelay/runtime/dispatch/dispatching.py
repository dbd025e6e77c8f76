"""Calls of operators that are dispatched: the chosen implementation is called, and its result
checked.

The reference evaluator, host code and scripts' calls of operators all come here, so an
implementation means the same to each of them.
"""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, final

import torch

from ... import dispatch
from ...analysis.dim_availability import needed
from ...diagnostics.catalogue.dispatch import ImplementationFailed, WrongResult
from ...diagnostics.diagnostic import RelayError, RunError
from ...dispatch.call import RUNNING, OperatorCall
from ...dispatch.keys import Key
from ...dispatch.registry import REGISTRY, Registration, Table
from ...dispatch.state import STATE, State
from ...dispatch.view import dtype_keys
from ...ir.dims import Dim
from ...ir.expr import Call, type_of
from ...ir.op import Op, ShapeBehaviour
from ...ir.types import TensorType, is_float, show
from ...lower_torch.apply import apply_op, as_tensors, operands_of, run_time_attr
from ..border.failure import located
from .conforming import Shapes

Size: TypeAlias = Callable[[Dim], int]
Apply: TypeAlias = Callable[[Call, Sequence[Any], Size, torch.device], Any]
"""The value of an operator's call at operands."""
_Chain: TypeAlias = tuple[Registration, ...]


@final
class DispatchedCall:
    """One call of a program, on one device.

    Called, it takes the operands, None for one that is omitted, and the values of `sizes`: what
    generated code passes.
    """

    def __init__(self, call: Call, device: torch.device) -> None:
        assert isinstance(call.callee, Op)
        self.call: Final = call
        self.op: Final = call.callee
        self.device: Final = device
        self.sizes: Final = tuple(dict.fromkeys(needed(call)))
        self._own: Final = (dispatch.device(device.type), *dtype_keys(call))
        self._has_device: Final = self.op.shape is ShapeBehaviour.FACTORY
        self._found: tuple[Table, State, tuple[Key, ...], _Chain] | None = None

    def __call__(self, *given: Any) -> Any:
        """Return the value of the call. Raises RunError, and what the operator's body raises."""
        count = len(self.call.args)
        known = dict(zip(self.sizes, given[count:], strict=True))
        return self.run(given[:count], lambda dim: dim.value(known.get))

    def run(self, operands: Sequence[Any], size: Size) -> Any:
        """Return the value of the call, in which `size` evaluates dims."""
        keys, chain = self._choose()
        if not chain:
            return apply_op(self.op, self.call, operands, size, self.device)
        return _Run(self, keys, chain, size).step(0, tuple(self._as_taken(operands)))

    def _choose(self) -> tuple[tuple[Key, ...], _Chain]:
        table, state = REGISTRY.table, STATE.get()
        found = self._found
        if found is None or found[0] is not table or found[1] is not state:
            keys = keys_at(state, self._own)
            chain = table.chain(self.op, keys)
            if state.running:
                chain = tuple(r for r in chain if r not in state.running)
            found = self._found = table, state, keys, chain
        return found[2], found[3]

    def _as_taken(self, operands: Sequence[Any]) -> list[Any]:
        """Return operands as implementations take them: as the operator's own body does, floats
        always as tensors."""
        values = operands_of(self.op, self.call, operands, self.device)
        types = [type_of(a) for a in self.call.args]
        return [
            as_tensors(v, t, self.device)
            if isinstance(v, int | float) and isinstance(t, TensorType) and is_float(t.dtype)
            else v
            for v, t in zip(values, types, strict=True)
        ]

    def keywords(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the keyword arguments of an implementation."""
        return {**attributes, "device": self.device} if self._has_device else attributes


@final
class _Run:
    """One call on its way through the implementations."""

    __slots__ = ("_attributes", "_chain", "_keys", "_made", "_size")

    def __init__(
        self, made: DispatchedCall, keys: tuple[Key, ...], chain: _Chain, size: Size
    ) -> None:
        self._made: Final = made
        self._keys: Final = keys
        self._chain: Final = chain
        self._size: Final = size
        attrs = {n: run_time_attr(a, size) for n, a in made.call.attrs.items()}
        self._attributes: Final = MappingProxyType(attrs)

    def step(self, position: int, operands: tuple[Any, ...]) -> Any:
        """Return the result of the implementation at a position, behind the last of the operator
        itself."""
        made = self._made
        span = made.call.span
        if position == len(self._chain):
            try:
                return apply_op(made.op, made.call, operands, self._size, made.device)
            except Exception as error:
                found = located(error, span, made.call)
                if found is error:
                    raise
                raise found from error
        registration = self._chain[position]
        try:
            result = self._called(registration, position, operands)
        except (RunError, BdbQuit):
            raise
        except Exception as error:
            where = made.op.name, registration.name, registration.place
            raise RunError(ImplementationFailed(span, *where, _words(error))) from error
        return self._checked(result, registration, operands)

    def _called(self, registration: Registration, position: int, operands: tuple[Any, ...]) -> Any:
        made = self._made
        call = OperatorCall(
            made.op,
            operands,
            self._attributes,
            made.device,
            self._keys,
            type_of(made.call),
            made.call.span,
            lambda given: self.step(position + 1, given),
        )
        state = STATE.set(STATE.get().inside(registration))
        running = RUNNING.set(call)
        try:
            if registration.boxed:
                return registration.implementation(call)
            return registration.implementation(*operands, **made.keywords(self._attributes))
        finally:
            RUNNING.reset(running)
            STATE.reset(state)

    def _checked(self, result: Any, registration: Registration, operands: tuple[Any, ...]) -> Any:
        made = self._made
        shapes = Shapes(made.device)
        for arg, value in zip(made.call.args, operands, strict=True):
            shapes.learn(type_of(arg), value)
        for dim in made.sizes:
            shapes.learn_dim(dim, self._size(dim))
        ty = type_of(made.call)
        fitting = shapes.fitted(result, ty)
        if fitting.fits:
            return fitting.value
        raise RunError(
            WrongResult(
                made.call.span,
                made.op.name,
                registration.name,
                registration.place,
                show(shapes.known(ty)),
                shapes.described(result),
            )
        )


def keys_at(state: State, own: Sequence[Key]) -> tuple[Key, ...]:
    """Return the keys of a call in the order in which they are asked: by kind, and of one kind
    those that are included first."""
    found = dict.fromkeys(k for k in (*state.included, *own) if k not in state.excluded)
    return tuple(sorted(found, key=lambda k: k.kind))


def apply(call: Call, operands: Sequence[Any], size: Size, device: torch.device) -> Any:
    """Return the value of an operator's call under the implementations that apply now."""
    assert isinstance(call.callee, Op)
    if not REGISTRY.table.registrations:
        return apply_op(call.callee, call, operands, size, device)
    return DispatchedCall(call, device).run(operands, size)


def _words(error: Exception) -> str:
    """Return an error's own words on one line."""
    if isinstance(error, RelayError):
        return error.diagnostics[0].title
    first = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
