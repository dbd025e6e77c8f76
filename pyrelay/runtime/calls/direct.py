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
    except (AttributeError, TypeError, ArithmeticError, RuntimeError):
        return general(args, kwargs)
    if not is_known or is_recording() and (v0.requires_grad or v1.requires_grad):
        return general(args, kwargs)
    uses.hits += 1
    try:
        result = function(v0, v1)
        return result
    except Exception as error:
        if not are_dense((v0, v1, )):
            return general(args, kwargs)
        if isinstance(error, RunError):
            raise
        raise located(error) from None

Of data `look_v0(v0)` returns what is known, None if they do not fit; what they were converted to is
passed. A function that a backend runs whole is called without its host code. Where torch might
record what the host code calls, recording is switched off around the call. Of a model the
combination has its structure, its mode, its frozen parameters, and the dtype and device of the
others; a call with models borrows their parameters, and gives back what it has left in their place:

    host, done = borrowed((v0, ), (v1, v2, ))
    ...
        try:
            result = function(*host)
        finally:
            done()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache, partial
from sys import gettrace
from textwrap import indent
from types import CodeType
from typing import Any, Final, TypeAlias, final

import torch

from ...autotuning.methods import is_watched
from ...config import current
from ...dataclass import dataclass
from ...diagnostics.diagnostic import RunError
from ...dispatch.registry import REGISTRY
from ...ir.types import DType, DTypeKind, TensorType
from ...passes.insertion import INSERTIONS
from ...translate.program.guards import holds_always
from ...translate.source.optimizers import OptimizerUse
from ..border.autograd import casts, record
from ..border.places import Parameter
from ..entries.entry import Entry
from ..host import UNWATCHED, CompiledProgram
from ..models.model import Model
from ..models.model_io import ParameterSource, host_values
from .parameters import Arrange

Call: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""A call of a function with its arguments by position and by name."""

ModelCall: TypeAlias = Callable[
    [tuple[ParameterSource, ...], tuple[Any, ...], Mapping[str, Any]], Any
]
"""The same with the implicit models first."""

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
"""The state that must be unchanged: the options, what is registered, the modes of torch, captured
names."""

_NONE_UPDATED: Final[Mapping[int, OptimizerUse]] = {}


def _of_model(model: Any) -> tuple[Any, ...]:
    """Return the facts about a model that select a direct call: its structure, whether it trains,
    and the kinds of its parameters. Raises TypeError for any other value."""
    if model.__class__ is not Model:
        raise TypeError
    return model.blueprint, model.training, *model.kinds


def _are_dense(values: Sequence[Any]) -> bool:
    """Return whether no tensor among some values is sparse, or laid out in a way that programs do
    not take: a failure of such a call is one of its arguments, which the general path refuses."""
    tensors = (v for v in values if isinstance(v, torch.Tensor))
    return all(v.layout is torch.strided for v in tensors)


def _indented(lines: Sequence[str]) -> list[str]:
    return indent("\n".join(lines), "    ").splitlines()


_SHARED: Final[dict[str, Any]] = {
    "of_model": _of_model,
    "are_dense": _are_dense,
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
        general: Callable[..., Any],
        updated: Mapping[int, OptimizerUse],
    ) -> None:
        """`compiled` runs the entry in this state; `general` does every other call. `updated` are
        the optimisers of explicit models."""
        self._compiled: Final = compiled
        self._state: Final = _state()
        self._known: Final[set[tuple[Any, ...]]] = set()
        implicit = entry.models // 2
        explicit = entry.parameters[entry.models :]
        kinds = (*[(_ArgumentKind.MODEL, "")] * implicit, *map(_kind, explicit))
        looks = {
            f"look_v{implicit + n}": entry.look(entry.models + n, device)
            for n in range(len(explicit))
        }
        finish = entry.finishing(compiled, device)
        has_models = any(kind is _ArgumentKind.MODEL for kind, _ in kinds)
        is_mapped = has_models or any(kind is _ArgumentKind.DATA for kind, _ in kinds)
        whole = None if is_mapped else compiled.direct(lambda *args: general(args, {}))
        if whole is not None and entry.gives_tensors:
            finish = None
        way = _Way.WHOLE if whole is not None else _Way.BARE if compiled.is_bare else _Way.HOST
        # Of what requires no grad torch records nothing; parameters of models do.
        may_record = has_models or not (entry.joins and compiled.requires_no_grad)
        is_guarded = not holds_always(guards_hold)
        around = (entry.joins, may_record, finish is not None, is_guarded)
        code = _code(_Form(kinds, implicit, way, *around))
        names: dict[str, Any] = _SHARED | {
            **self._state,
            **looks,
            "arrange": arrange,
            "guards_hold": guards_hold,
            "known": self._known,
            "uses": uses,
            "general": general,
            "function": compiled.function,
            "whole": whole,
            "finish": finish,
            "device": device,
            "located": compiled.located,
            "borrowed": partial(host_values, updated=updated),
        }
        exec(code, names)
        self.call: Final[Callable[..., Any]] = names["call"]
        """Does the call directly, or by the general path: a `Call`, or a `ModelCall` where there
        are implicit models."""
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
    general: Callable[..., Any],
    updated: Mapping[int, OptimizerUse] = _NONE_UPDATED,
) -> Direct | None:
    """Return the direct calls of an entry with such a call as has just been made among them; None
    where that cannot be. `values` are the implicit models and the arguments; `before` are the
    direct calls that the entry has had."""
    if not entry.is_direct or gettrace() is not None or REGISTRY.table.registrations:
        return None
    if casts() or is_watched():
        return None
    models = entry.models // 2
    if any(not isinstance(v, Model) for v in values[:models]):
        return None
    host, _ = host_values(values[:models], values[models:], updated)
    device = entry.direct_device(host)
    if device is None:
        return None
    compiled = entry.program.compiled(device)
    if not isinstance(compiled, CompiledProgram) or compiled.is_debugged:
        return None
    found = before
    if found is None or not found.serves(compiled):
        found = Direct(entry, compiled, device, arrange, guards_hold, uses, general, updated)
    found.add(values)
    return found


def _state() -> dict[str, Any]:
    return {"options": current(), "steps": INSERTIONS.all, "table": REGISTRY.table}


class _ArgumentKind(Enum):
    """The arguments that a parameter takes: a model, a tensor, or a number too, which may have to
    become a tensor; or data, which are looked at."""

    MODEL = "model"
    TENSOR = "tensor"
    NUMBER = "number"
    FLOAT = "float"
    DATA = "data"


class _Way(Enum):
    """How a function is called: as host code, as host code of which autograd need not know, or by
    a backend that runs it whole, which torch does not see."""

    HOST = "host"
    BARE = "bare"
    WHOLE = "whole"


def _kind(parameter: Parameter) -> tuple[_ArgumentKind, str]:
    """Return the kind of the arguments of a parameter, and the name of their dtype."""
    ty = parameter.type
    if parameter.is_model:
        return _ArgumentKind.MODEL, ""
    if not isinstance(ty, TensorType):
        return _ArgumentKind.DATA, ""
    assert isinstance(ty.dtype, DType)
    if ty.shape:
        return _ArgumentKind.TENSOR, ty.dtype.name
    is_float = ty.dtype.kind is DTypeKind.FLOAT
    return _ArgumentKind.FLOAT if is_float else _ArgumentKind.NUMBER, ty.dtype.name


@final
@dataclass(frozen=True, slots=True)
class _Form:
    """The form of direct calls: the kinds of their arguments, of which the first ones are as many
    implicit models; how the function is called; whether
    it may join torch's graph, and torch may record what it calls; whether there is more to do with
    the result; whether captured names are to be looked at."""

    kinds: tuple[tuple[_ArgumentKind, str], ...]
    models: int
    way: _Way
    joins: bool
    may_record: bool
    is_finished: bool
    is_guarded: bool

    @property
    def has_models(self) -> bool:
        """Whether models are among the arguments, or implicit."""
        return any(kind is _ArgumentKind.MODEL for kind, _ in self.kinds)

    @property
    def records(self) -> bool:
        """Whether torch must be kept from recording."""
        return self.may_record and self.way is not _Way.WHOLE


@lru_cache(maxsize=256)
def _code(form: _Form) -> CodeType:
    """Return the code of the functions `key` and `call`."""
    every = [f"v{n}" for n in range(len(form.kinds))]
    models, names = every[: form.models], every[form.models :]
    given = list(zip(every, form.kinds, strict=True))
    data = [name for name, (kind, _) in given if kind is _ArgumentKind.DATA]
    key = _tuple([_part(name, *kind) for name, kind in given if name not in data])
    is_known = " and ".join([*(f"k_{name} is not None" for name in data), f"{key} in known"])
    values = _tuple(names)
    general = "general(models, args, kwargs)" if models else "general(args, kwargs)"
    grads = [g for n, (kind, _) in given if (g := _grad(n, kind, is_implicit=n in models))]
    scalars = [
        f"        if {n}.__class__ in numbers:\n"
        f"            {n} = scalar({n}, dtype=torch.{dtype}, device=device)"
        for n, (kind, dtype) in given
        if kind is _ArgumentKind.FLOAT and form.way is not _Way.WHOLE
    ]
    lines = [
        f"def key({', '.join(every)}):",
        f"    return {key}",
        f"def call({'models, ' if models else ''}args, kwargs):",
        f"    if not ({' and '.join(_CONDITIONS if form.is_guarded else _CONDITIONS[:-1])}):",
        f"        return {general}",
        "    try:",
        *([f"        {_tuple(models)} = models"] if models else []),
        f"        if kwargs or len(args) != {len(names)}:",
        f"            {values} = arrange(*args, **kwargs)",
        *(["        else:", f"            {values} = args"] if names else []),
        *(f"        k_{name} = look_{name}({name})" for name in data),
        f"        is_known = {is_known}",
        *scalars,
        "    except (AttributeError, TypeError, ValueError, ArithmeticError, RuntimeError):",
        f"        return {general}",
        *(["    records = is_recording()"] if form.records else []),
        *_left(form, " or ".join(grads), general),
        "    uses.hits += 1",
        *(f"    if k_{n}.host is not None: {n} = k_{n}.host" for n in data),
        *([f"    host, done = borrowed({_tuple(models)}, {values})"] if form.has_models else []),
        *_called(form, names, general),
    ]
    return compile("\n".join(lines), "<a direct call>", "exec")


def _tuple(names: Sequence[str]) -> str:
    return f"({''.join(f'{n}, ' for n in names)})"


def _grad(name: str, kind: _ArgumentKind, *, is_implicit: bool) -> str | None:
    """Return the text that asks whether an argument may join torch's graph; None if it never does:
    the parameters of explicit models are in references."""
    match kind:
        case _ArgumentKind.MODEL:
            return f"{name}.is_trainable" if is_implicit else None
        case _ArgumentKind.TENSOR:
            return f"{name}.requires_grad"
        case _ArgumentKind.DATA:
            return f"k_{name}.requires_grad"
        case _ArgumentKind.NUMBER | _ArgumentKind.FLOAT:
            return f"getattr({name}, 'requires_grad', False)"


def _left(form: _Form, grads: str, general: str) -> list[str]:
    """Return the lines that leave calls of new kinds to the general path, and those with arguments
    of which one requires grad, as `grads` says."""
    now = "records" if form.records else "is_recording()"
    joined = f" or {now} and ({grads})" if form.joins and grads else ""
    return [f"    if not is_known{joined}:", f"        return {general}"]


def _finished(form: _Form, names: Sequence[str]) -> str:
    """Return the text of the arguments with which a result is finished: the host values that are no
    data, and the tensors of each that is."""
    own = [*enumerate(zip(names, form.kinds[form.models :], strict=True), 2 * form.models)]
    data = [name for _, (name, (kind, _)) in own if kind is _ArgumentKind.DATA]
    kept = [(place, name) for place, (name, _) in own if name not in data]
    if not form.has_models:
        host = _tuple([name for _, name in kept])
    elif not data:
        host = "host"
    else:
        places = (*range(2 * form.models), *(place for place, _ in kept))
        host = _tuple([f"host[{place}]" for place in places])
    return ", ".join([host, *(f"k_{name}" for name in data)])


def _called(form: _Form, names: Sequence[str], general: str) -> list[str]:
    """Return the lines that call the function, and return its result."""
    has_models = form.has_models
    listed = "*host" if has_models else ", ".join(names)
    function = "whole.latest" if form.way is _Way.WHOLE else "function"
    called = [f"result = {function}({listed})"]
    if has_models:
        called = ["try:", *_indented(called), "finally:", "    done()"]
    if form.way is _Way.BARE:
        called = ["with unwatched():", *_indented(called)]
    off = ["if records:", "    record(False)"] if form.records else []
    on = ["finally:", "    if records:", "        record(True)"] if form.records else []
    # An interrupt may have come before the first time was over.
    again = ["except KeyboardInterrupt:", "    done()", "    raise"] if has_models else []
    result = f"finish(result, {_finished(form, names)})" if form.is_finished else "result"
    lines = [
        "try:",
        *_indented([*off, *called, f"return {result}"]),
        *again,
        "except Exception as error:",
        f"    if not are_dense({_tuple(names)}):",
        f"        return {general}",
        "    if isinstance(error, RunError):",
        "        raise",
        "    raise located(error) from None",
        *on,
    ]
    return _indented(lines)


def _part(name: str, kind: _ArgumentKind, dtype: str) -> str:
    """Return the text of what selects a call of an argument. An integer that its dtype does not
    have raises AttributeError there, as what is no tensor does."""
    if kind is _ArgumentKind.MODEL:
        return f"of_model({name})"
    tensor = f"{name}.dtype, {name}.shape, {name}.device"
    if kind is _ArgumentKind.TENSOR:
        return tensor
    is_number = f"{name}.__class__ in numbers"
    if kind is _ArgumentKind.NUMBER and dtype != "bool":
        info = torch.iinfo(getattr(torch, dtype))
        is_number = f"{is_number} and {info.min} <= {name} <= {info.max}"
    return f"{name}.__class__ if {is_number} else ({tensor})"
