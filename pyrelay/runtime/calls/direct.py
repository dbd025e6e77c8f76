"""Direct calls: one generated function in the place of binding, guards and checks.

A call whose arguments are tensors and numbers is checked once for each combination of dtypes,
shapes and devices. A call like it is then a look-up of that combination and the call of the host
function. Whatever is not as it was takes the general path:

def key(v0, v1):
    return (v0.dtype, v0.shape, v0.device, v1.dtype, v1.shape, v1.device,)

def call(args, kwargs):
    if not (current() is options and ... and guards_hold()):
        return general(args, kwargs)
    try:
        if kwargs or len(args) != 2:
            (v0, v1, ) = arrange(*args, **kwargs)
        else:
            (v0, v1, ) = args
        is_known = (v0.dtype, v0.shape, v0.device, v1.dtype, v1.shape, v1.device,) in known
    except (AttributeError, TypeError):
        return general(args, kwargs)
    records = is_recording()
    if not is_known or records and (v0.requires_grad or v1.requires_grad):
        return general(args, kwargs)
    uses.hits += 1
    try:
        if records:
            record(False)
        return function(v0, v1)
    except RunError:
        raise
    except Exception as error:
        raise located(error) from None
    finally:
        if records:
            record(True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from sys import gettrace
from types import CodeType
from typing import Any, Final, TypeAlias, final

import torch

from ...autotuning.methods import is_watched
from ...config import current
from ...diagnostics.diagnostic import RunError
from ...dispatch.registry import REGISTRY
from ...ir.types import DType, DTypeKind, TensorType, Type
from ...passes.insertion import INSERTIONS
from ..host import UNWATCHED, CompiledProgram
from ..interop.autograd import casts, record
from .entry import Entry
from .parameters import Arrange

Call: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""A call of a function with its arguments by position and by name."""

_MOST_KNOWN: Final = 4096

_CONDITIONS: Final = (
    "current() is options",
    "gettrace() is None",
    "inserted.all is steps",
    "registry.table is table",
    "not casts()",
    "not is_watched()",
    "guards_hold()",
)
"""What must be as it was: the options, what is registered, the modes of torch, captured names."""

_SHARED: Final[dict[str, Any]] = {
    "current": current,
    "gettrace": gettrace,
    "inserted": INSERTIONS,
    "registry": REGISTRY,
    "casts": casts,
    "is_watched": is_watched,
    "torch": torch,
    "scalar": torch.scalar_tensor,
    "is_recording": torch.is_grad_enabled,
    "record": record,
    "unwatched": UNWATCHED,
    "numbers": frozenset((bool, int, float)),
    "RunError": RunError,
}


@final
@dataclass(slots=True)
class Uses:
    """How often a function was called with what it is compiled for."""

    hits: int = 0


@final
class Direct:
    """The direct calls of an entry, for the state of the process in which it was made."""

    def __init__(
        self,
        entry: Entry,
        compiled: CompiledProgram,
        device: torch.device,
        arrange: Arrange,
        guards_hold: Callable[[], bool],
        uses: Uses,
        general: Call,
    ) -> None:
        """`compiled` runs the entry in this state; `general` does every other call."""
        self._compiled: Final = compiled
        self._state: Final = _state()
        self._known: Final[set[tuple[Any, ...]]] = set()
        kinds = tuple([_kind(p.type) for p in entry.parameters])
        finish = entry.finishing(compiled, device)
        code = _code(kinds, entry.joins, compiled.is_bare, finish is not None)
        names: dict[str, Any] = _SHARED | {
            **self._state,
            "arrange": arrange,
            "guards_hold": guards_hold,
            "known": self._known,
            "uses": uses,
            "general": general,
            "function": compiled.function,
            "finish": finish,
            "device": device,
            "located": compiled.located,
        }
        exec(code, names)
        self.call: Final[Call] = names["call"]
        """Does the call directly, or by the general path."""
        self._key: Final[Callable[..., tuple[Any, ...]]] = names["key"]

    def serves(self, compiled: CompiledProgram) -> bool:
        """Return whether it is for the state of the process as it is now, in which `compiled` runs
        the entry."""
        now = _state()
        same = all(value is now[name] for name, value in self._state.items())
        return same and self._compiled is compiled

    def add(self, values: Sequence[Any]) -> None:
        """Let calls be direct whose arguments are like these, which have been checked."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add(self._key(*values))


def direct_call(
    before: Direct | None,
    entry: Entry,
    values: Sequence[Any],
    arrange: Arrange,
    guards_hold: Callable[[], bool],
    uses: Uses,
    general: Call,
) -> Direct | None:
    """Return the direct calls of an entry with such a call as has just been made among them; None
    where that cannot be. `before` are those that the entry has had."""
    if not entry.takes_tensors or gettrace() is not None or REGISTRY.table.registrations:
        return None
    if casts() or is_watched():
        return None
    device = entry.direct_device(values)
    if device is None:
        return None
    compiled = entry.program.compiled(device)
    if not isinstance(compiled, CompiledProgram) or compiled.is_debugged:
        return None
    found = before
    if found is None or not found.serves(compiled):
        found = Direct(entry, compiled, device, arrange, guards_hold, uses, general)
    found.add(values)
    return found


def _state() -> dict[str, Any]:
    return {"options": current(), "steps": INSERTIONS.all, "table": REGISTRY.table}


class _Kind(Enum):
    """What an argument may be: a tensor, or a number too, which may have to become a tensor."""

    TENSOR = "tensor"
    NUMBER = "number"
    FLOAT = "float"


def _kind(ty: Type) -> tuple[_Kind, str]:
    """Return the kind of the arguments of a parameter, and the name of their dtype."""
    assert isinstance(ty, TensorType)
    assert isinstance(ty.dtype, DType)
    if ty.shape:
        return _Kind.TENSOR, ty.dtype.name
    is_float = ty.dtype.kind is DTypeKind.FLOAT
    return _Kind.FLOAT if is_float else _Kind.NUMBER, ty.dtype.name


@lru_cache(maxsize=256)
def _code(
    kinds: tuple[tuple[_Kind, str], ...], joins: bool, is_bare: bool, is_finished: bool
) -> CodeType:
    """Return the code of the functions `key` and `call` for parameters of these kinds."""
    names = [f"v{n}" for n in range(len(kinds))]
    given = list(zip(names, kinds, strict=True))
    key = f"({''.join(f'{_part(name, kind)}, ' for name, (kind, _) in given)})"
    listed = ", ".join(names)
    host = f"({''.join(f'{n}, ' for n in names)})"
    grads = " or ".join(
        f"{n}.requires_grad" if kind is _Kind.TENSOR else f"getattr({n}, 'requires_grad', False)"
        for n, (kind, _) in given
    )
    scalars = [
        f"        if {n}.__class__ in numbers:\n"
        f"            {n} = scalar({n}, dtype=torch.{dtype}, device=device)"
        for n, (kind, dtype) in given
        if kind is _Kind.FLOAT
    ]
    lines = [
        f"def key({listed}):",
        f"    return {key}",
        "def call(args, kwargs):",
        f"    if not ({' and '.join(_CONDITIONS)}):",
        "        return general(args, kwargs)",
        "    try:",
        f"        if kwargs or len(args) != {len(names)}:",
        f"            {host} = arrange(*args, **kwargs)",
        *(["        else:", f"            {host} = args"] if names else []),
        f"        is_known = {key} in known",
        *scalars,
        "    except (AttributeError, TypeError, ArithmeticError, RuntimeError):",
        "        return general(args, kwargs)",
        "    records = is_recording()",
        f"    if not is_known{f' or records and ({grads})' if joins and grads else ''}:",
        "        return general(args, kwargs)",
        "    uses.hits += 1",
        "    try:",
        "        if records:",
        "            record(False)",
        *(["        with unwatched():"] if is_bare else []),
        f"{'    ' if is_bare else ''}        result = function({listed})",
        f"        return {f'finish(result, {host})' if is_finished else 'result'}",
        "    except RunError:",
        "        raise",
        "    except Exception as error:",
        "        raise located(error) from None",
        "    finally:",
        "        if records:",
        "            record(True)",
    ]
    return compile("\n".join(lines), "<a direct call>", "exec")


def _part(name: str, kind: _Kind) -> str:
    tensor = f"{name}.dtype, {name}.shape, {name}.device"
    if kind is _Kind.TENSOR:
        return tensor
    return f"{name}.__class__ if {name}.__class__ in numbers else ({tensor})"
