"""Direct calls: one generated function in the place of binding, guards and checks.

A call whose arguments are tensors and numbers, all by position, is checked once for each
combination of dtypes, shapes and devices. A call like it is then a look-up of that combination and
the call of the host function. Whatever is not as it was takes the general path:

def key(v0, v1):
    return (v0.dtype, v0.shape, v0.device, v1.dtype, v1.shape, v1.device,)

def call(args, kwargs):
    if kwargs or len(args) != 2 or not (current() is options and ... and guards_hold()):
        return general(args, kwargs)
    v0, v1, = args
    try:
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
from functools import lru_cache
from sys import gettrace
from types import CodeType
from typing import Any, Final, TypeAlias, final

import torch

from ...autotuning.methods import is_transformed
from ...config import current
from ...diagnostics.diagnostic import RunError
from ...dispatch.registry import REGISTRY
from ...ir.types import TensorType
from ...passes.insertion import INSERTIONS
from ..host import UNWATCHED, CompiledProgram
from ..interop.autograd import casts
from .entry import Entry

Call: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""A call of a function with its arguments by position and by name."""

_torch: Any = torch
_MOST_KNOWN: Final = 4096

_CONDITIONS: Final = (
    "current() is options",
    "gettrace() is None",
    "inserted.all is steps",
    "registry.table is table",
    "not casts()",
    "not is_transformed()",
    "guards_hold()",
)
"""What must be as it was: the options, what is registered, the modes of torch, captured names."""

_SHARED: Final[dict[str, Any]] = {
    "current": current,
    "gettrace": gettrace,
    "inserted": INSERTIONS,
    "registry": REGISTRY,
    "casts": casts,
    "is_transformed": is_transformed,
    "is_recording": torch.is_grad_enabled,
    "record": _torch._C._set_grad_enabled,  # noqa: SLF001  what torch.no_grad calls
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
        guards_hold: Callable[[], bool],
        uses: Uses,
        general: Call,
    ) -> None:
        """`compiled` runs the entry in this state; `general` does every other call."""
        self._compiled: Final = compiled
        self._state: Final = _state()
        self._known: Final[set[tuple[Any, ...]]] = set()
        ranked = tuple([_has_rank(p.type) for p in entry.parameters])
        finish = entry.finishing(compiled, device)
        code = _code(ranked, entry.joins, compiled.is_bare, finish is not None)
        names: dict[str, Any] = _SHARED | {
            **self._state,
            "guards_hold": guards_hold,
            "known": self._known,
            "uses": uses,
            "general": general,
            "function": compiled.function,
            "finish": finish,
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
    guards_hold: Callable[[], bool],
    uses: Uses,
    general: Call,
) -> Direct | None:
    """Return the direct calls of an entry with such a call as has just been made among them; None
    where that cannot be. `before` are those that the entry has had."""
    if gettrace() is not None or REGISTRY.table.registrations or casts() or is_transformed():
        return None
    device = entry.device_as_it_is(values)
    if device is None:
        return None
    compiled = entry.program.compiled(device)
    if not isinstance(compiled, CompiledProgram) or compiled.is_debugged:
        return None
    found = before
    if found is None or not found.serves(compiled):
        found = Direct(entry, compiled, device, guards_hold, uses, general)
    found.add(values)
    return found


def _state() -> dict[str, Any]:
    return {"options": current(), "steps": INSERTIONS.all, "table": REGISTRY.table}


def _has_rank(ty: Any) -> bool:
    return isinstance(ty, TensorType) and bool(ty.shape)


@lru_cache(maxsize=256)
def _code(ranked: tuple[bool, ...], joins: bool, is_bare: bool, is_finished: bool) -> CodeType:
    """Return the code of the functions `key` and `call` for parameters, of which those that are
    `ranked` are no numbers."""
    names = [f"v{n}" for n in range(len(ranked))]
    parts = [_part(*each) for each in zip(names, ranked, strict=True)]
    key = f"({''.join(f'{part}, ' for part in parts)})"
    listed = ", ".join(names)
    grad = " or ".join(
        f"{n}.requires_grad" if is_ranked else f"getattr({n}, 'requires_grad', False)"
        for n, is_ranked in zip(names, ranked, strict=True)
    )
    value = f"function({listed})"
    lines = [
        f"def key({listed}):",
        f"    return {key}",
        "def call(args, kwargs):",
        f"    if kwargs or len(args) != {len(names)} or not ({' and '.join(_CONDITIONS)}):",
        "        return general(args, kwargs)",
        *([f"    {listed}, = args"] if names else []),
        "    try:",
        f"        is_known = {key} in known",
        "    except (AttributeError, TypeError):",
        "        return general(args, kwargs)",
        "    records = is_recording()",
        f"    if not is_known{f' or records and ({grad})' if joins and grad else ''}:",
        "        return general(args, kwargs)",
        "    uses.hits += 1",
        "    try:",
        "        if records:",
        "            record(False)",
        *(["        with unwatched():"] if is_bare else []),
        f"{'    ' if is_bare else ''}        result = {value}",
        f"        return {'finish(result, args)' if is_finished else 'result'}",
        "    except RunError:",
        "        raise",
        "    except Exception as error:",
        "        raise located(error) from None",
        "    finally:",
        "        if records:",
        "            record(True)",
    ]
    return compile("\n".join(lines), "<a direct call>", "exec")


def _part(name: str, is_ranked: bool) -> str:
    tensor = f"{name}.dtype, {name}.shape, {name}.device"
    return (
        tensor if is_ranked else f"{name}.__class__ if {name}.__class__ in numbers else ({tensor})"
    )
