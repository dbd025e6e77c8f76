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
    except (AttributeError, TypeError, ValueError, ArithmeticError, RuntimeError):
        return general(args, kwargs)
    if not is_known: return general(args, kwargs)
    if is_recording() and (v0.requires_grad or v1.requires_grad): return otherwise(args, kwargs)
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
record what the host code calls, recording is switched off around the call. A call that joins
torch's graph is made `otherwise`: by another such function, whose look-up finds what makes the
node. Of a model the combination has its `Kind`, which one comparison of its tensors confirms; a
call with models lends their parameters and state to host code, and stores the updated ones:

        k_v0, t_v0 = v0.seen()
    ...
    h_v0 = tree_v0(t_v0)
    l_v0 = h_v0, ()
    h_v0 = Cell(l_v0)
    ...
        try:
            result = function((h_v0, no_state_v0), v1)
        finally:
            if h_v0.value is not l_v0: given_back(((v0, (), h_v0, l_v0), ))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from sys import gettrace
from typing import Any, Final, TypeAlias, final

import torch

from ...autotuning.methods import is_watched
from ...config import current
from ...dataclass import dataclass
from ...diagnostics.diagnostic import RunError
from ...dispatch.registry import REGISTRY
from ...passes.insertion import INSERTIONS
from ...translate.program.guards import holds_always
from ...translate.source.optimizers import OptimizerUse
from ..border.autograd import casts, record
from ..entries.entry import Entry
from ..host import UNWATCHED, CompiledProgram
from ..models.model import Model
from ..models.model_io import ParameterSource, given_back, host_values
from ..values.values import Cell
from .direct_code import ArgumentKind, Form, Way, code_of, kind_of
from .parameters import Arrange

Call: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""A call of a function with its arguments by position and by name."""

ModelCall: TypeAlias = Callable[
    [tuple[ParameterSource, ...], tuple[Any, ...], Mapping[str, Any]], Any
]
"""The same with the implicit models first."""

_MOST_KNOWN: Final = 4096

_NONE_UPDATED: Final[Mapping[int, OptimizerUse]] = {}


def _are_dense(values: Sequence[Any]) -> bool:
    """Return whether no tensor among some values is sparse, or laid out in a way that programs do
    not take: a failure of such a call is one of its arguments, which the general path refuses."""
    tensors = (v for v in values if isinstance(v, torch.Tensor))
    return all(v.layout is torch.strided for v in tensors)


_SHARED: Final[dict[str, Any]] = {
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
    "Cell": Cell,
    "given_back": given_back,
}


@final
@dataclass(slots=True)
class Uses:
    """How often a function was called with what it is compiled for."""

    hits: int = 0


@final
@dataclass(frozen=True, slots=True)
class Around:
    """The parts of a function that its direct calls need besides its entry: `general` does every
    other call, `updated` are the optimisers of explicit models, `made` makes of a result and of the
    implicit models what the caller gets."""

    arrange: Arrange
    guards_hold: Callable[[], bool]
    uses: Uses
    general: Callable[..., Any]
    updated: Mapping[int, OptimizerUse] = _NONE_UPDATED
    made: Callable[[Any, tuple[ParameterSource, ...]], Any] | None = None


@final
class Direct:
    """The direct calls of an entry, for the state of the process in which it was made: those that
    join torch's graph, or those that do not."""

    def __init__(
        self,
        entry: Entry,
        device: torch.device,
        values: Sequence[Any],
        around: Around,
        compiled: CompiledProgram | None,
    ) -> None:
        """`compiled` runs the entry in this state; None for calls that join torch's graph. `values`
        are the implicit models and the arguments of one of the calls."""
        self._compiled: Final = compiled
        self._state: Final = _state()
        self._known: Final[dict[tuple[Any, ...], Any]] = {}
        explicit = entry.parameters[entry.models :]
        kinds = (*[(ArgumentKind.MODEL, "")] * (entry.models // 2), *map(kind_of, explicit))
        models = {n: v for n, v in enumerate(values) if kinds[n][0] is ArgumentKind.MODEL}
        names: dict[str, Any] = _SHARED | self._state | _of_calls(entry, device, around)
        names["known"] = self._known
        for place, model in models.items():
            names |= _of_model(place, model)
        way, may_record, finish = Way.JOINED, False, None
        if compiled is not None:
            has_data = any(kind is ArgumentKind.DATA for kind, _ in kinds)
            whole, finish = None, entry.finishing(compiled, device)
            if not models and not has_data:
                whole = compiled.direct(lambda *args: around.general(args, {}))
            if whole is not None and entry.gives_tensors:
                finish = None
            way = Way.BARE if compiled.is_bare else Way.HOST
            way = way if whole is None else Way.WHOLE
            # Of what requires no grad torch records nothing; parameters of models do.
            may_record = bool(models) or not (entry.joins and compiled.requires_no_grad)
            names |= {"function": compiled.function, "whole": whole, "finish": finish}
            names["located"] = compiled.located
        form = Form(
            kinds,
            entry.models // 2,
            tuple(n for n, m in models.items() if m.blueprint.state),
            way,
            entry.joins,
            may_record,
            finish is not None,
            is_guarded=not holds_always(around.guards_hold),
            is_optimized=bool(around.updated),
            is_made=around.made is not None,
        )
        exec(code_of(form), names)
        self._names: Final = names
        self.call: Final[Callable[..., Any]] = names["call"]
        """Does the call directly, or by the general path: a `Call`, or a `ModelCall` where there
        are implicit models."""
        self._key: Final[Callable[..., tuple[Any, ...]]] = names["key"]

    def serves(self, compiled: CompiledProgram | None) -> bool:
        """Return whether it is for the state of the process as it is now, in which `compiled` runs
        the entry."""
        now = _state()
        same = all(value is now[name] for name, value in self._state.items())
        return same and self._compiled is compiled

    def add(self, values: Sequence[Any], function: Any) -> None:
        """Let calls be direct whose arguments are like these, which have been checked. `function`
        makes the nodes of calls that join torch's graph."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[self._key(*values)] = function

    def leave_to(self, other: Direct) -> None:
        """Leave calls that join torch's graph, or those that do not, to others."""
        self._names["otherwise"] = other.call


def _of_calls(entry: Entry, device: torch.device, around: Around) -> dict[str, Any]:
    """Return what the direct calls of an entry need, by names."""
    implicit = entry.models // 2
    places = range(implicit, implicit + len(entry.parameters) - entry.models)
    looks = {f"look_v{n}": entry.look(n - implicit + entry.models, device) for n in places}
    return {
        **looks,
        "arrange": around.arrange,
        "guards_hold": around.guards_hold,
        "uses": around.uses,
        "general": around.general,
        "otherwise": around.general,
        "located": lambda error: error,  # a node has found the place
        "device": device,
        "made": around.made,
        "borrowed": partial(host_values, updated=around.updated),
    }


def _of_model(place: int, model: Model) -> dict[str, Any]:
    """Return what is known of a model by the names that it has in a direct call."""
    blueprint, name = model.blueprint, f"v{place}"
    found: dict[str, Any] = {f"tree_{name}": blueprint.params_tree}
    if not blueprint.state:
        return {**found, f"no_state_{name}": blueprint.state_tree(())}
    count = len(blueprint.params)
    return {**found, f"states_{name}": blueprint.state_tree, f"count_{name}": count}


@final
class Directs:
    """The direct calls of an entry."""

    def __init__(self, entry: Entry) -> None:
        self._entry: Final = entry
        self._plain: Direct | None = None
        self._joined: Direct | None = None

    def call_like(self, values: Sequence[Any], around: Around) -> Callable[..., Any] | None:
        """Return the direct calls with such a call as has just been made among them; None where
        that cannot be. `values` are the implicit models and the arguments."""
        entry = self._entry
        if not entry.is_direct or gettrace() is not None or REGISTRY.table.registrations:
            return None
        if casts() or is_watched():
            return None
        models = entry.models // 2
        if any(not isinstance(v, Model) for v in values[:models]):
            return None
        host, _ = host_values(values[:models], values[models:], around.updated)
        device = entry.direct_device(host)
        if device is None:
            return None
        if entry.is_joined(host):
            return self._joined_like(device, values, host, around)
        compiled = entry.program.compiled(device)
        if not isinstance(compiled, CompiledProgram) or compiled.is_debugged:
            return None
        found = self._plain
        if found is None or not found.serves(compiled):
            found = self._plain = Direct(entry, device, values, around, compiled)
            self._link()
        found.add(values, None)
        return found.call

    def _joined_like(
        self, device: torch.device, values: Sequence[Any], host: Sequence[Any], around: Around
    ) -> Callable[..., Any] | None:
        explicit = map(kind_of, self._entry.parameters[self._entry.models :])
        if any(kind in (ArgumentKind.DATA, ArgumentKind.FLOAT) for kind, _ in explicit):
            return None
        function = self._entry.node_maker(device, host)
        if function is None:
            return None
        found = self._joined
        if found is None or not found.serves(None):
            found = self._joined = Direct(self._entry, device, values, around, None)
            self._link()
        found.add(values, function)
        return found.call

    def _link(self) -> None:
        if self._plain is not None and self._joined is not None:
            self._plain.leave_to(self._joined)
            self._joined.leave_to(self._plain)


def _state() -> dict[str, Any]:
    return {"options": current(), "steps": INSERTIONS.all, "table": REGISTRY.table}
