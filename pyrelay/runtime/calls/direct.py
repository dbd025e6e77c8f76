"""Direct calls: one generated function in the place of binding, guards and checks.

A call whose arguments are tensors and numbers is checked once for each combination of dtypes,
shapes and devices. A call like it is then a look-up of that combination and the call of the host
function, and mostly less: tensors that are like those of the call before are found by one
comparison, which sees too whether torch does anything with calls. Whatever is not as it was takes
the general path:

def key(v0, v1):
    return (v0.dtype, v0.shape, v0.device, v0.requires_grad, v1.dtype, ...)

def call(args, kwargs):
    global latest
    try:
        if not (overriding() is override and ... and (same() or guards_hold())):
            return general(args, kwargs)
        if kwargs or len(args) != 2:
            (v0, v1, ) = arrange(*args, **kwargs)
        else:
            (v0, v1, ) = args
        like = latest
        check, joins, run, settled, tries, = like
        if not (check(v0, v1)):
            like = other(like, key(v0, v1), (v0, v1, ))
            if like is None: return general(args, kwargs)
            check, joins, run, settled, tries, = like
            latest = like
            settled = None
    except (ArithmeticError, AttributeError, LookupError, ...):
        return general(args, kwargs)
    if joins and is_recording(): return otherwise(args, kwargs)
    uses.hits += 1
    try:
        if settled is not None:
            result = settled(v0, v1)
        else:
            if tries: settle(like, (v0, v1, ))
            result = run(v0, v1)
        return result
    except Exception as error:
        if not are_dense((v0, v1, )):
            return general(args, kwargs)
        if isinstance(error, RunError):
            raise
        raise located(error) from None

What is `settled` is the host function with a region in it that looks no more at its operands, which
are these tensors. Of data `look_v0(v0)` returns what is known, None if they do not fit; what they
were converted to is passed. A function that a backend runs whole is called without its host code.
Where torch might record what the host code calls, recording is switched off around the call. A call
that joins torch's graph is made `otherwise`: by another such function, in which `run` makes the
node. Of a model the tree and the mode are compared as well; a call with models lends their
parameters and state to host code, and stores the updated ones:

        d_v0 = v0.__dict__
        t_v0 = d_v0['blueprint'].read(d_v0['tables'])
    ...
    h_v0 = tree_v0(t_v0)
    l_v0 = h_v0, ()
    h_v0 = Cell(l_v0)
    ...
        try:
            result = run((h_v0, no_state_v0), v1)
        finally:
            if h_v0.value is not l_v0: given_back(((v0, (), h_v0, l_v0), ))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from sys import gettrace
from typing import Any, Final, TypeAlias, final

import torch
from torch.autograd import forward_ad

from ...autotuning.methods import is_watched
from ...config import overriding
from ...dataclass import dataclass
from ...diagnostics.diagnostic import RunError
from ...dispatch.registry import REGISTRY
from ...passes.insertion import INSERTIONS
from ...translate.program.guards import Check
from ...translate.source.optimizers import OptimizerUse
from ..border.autograd import casts, record
from ..entries.entry import Entry
from ..host import UNWATCHED, CompiledProgram
from ..models.model import Model
from ..models.model_io import ParameterSource, given_back, host_values
from ..values.likeness import alike, never
from ..values.structure import lent
from ..values.values import Cell
from .direct_code import CHECK, SETTLED, TRIES, ArgumentKind, Form, Way, code_of, kind_of
from .parameters import Arrange

Call: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""A call of a function with its arguments by position and by name."""

ModelCall: TypeAlias = Callable[
    [tuple[ParameterSource, ...], tuple[Any, ...], Mapping[str, Any]], Any
]
"""The same with the implicit models first."""

_MOST_KNOWN: Final = 4096

_MOST_TRIES: Final = 2
"""How many calls behind the first one look for a function that is settled: what is built of a
region may be built when it is called again."""

_NONE_UPDATED: Final[Mapping[int, OptimizerUse]] = {}


def _are_dense(values: Sequence[Any]) -> bool:
    """Return whether no tensor among some values is sparse, or laid out in a way that programs do
    not take: a failure of such a call is one of its arguments, which the general path refuses."""
    tensors = (v for v in values if isinstance(v, torch.Tensor))
    return all(v.layout is torch.strided for v in tensors)


_PROBE: Final = torch.empty((), device="cpu")
"""What torch does with calls, it does with those of this tensor."""

_SHARED: Final[dict[str, Any]] = {
    "are_dense": _are_dense,
    "overriding": overriding,
    "forward_ad": forward_ad,
    "gettrace": gettrace,
    "inserted": INSERTIONS,
    "registry": REGISTRY,
    "casts": casts,
    "is_watched": is_watched,
    "torch": torch,
    "probe": _PROBE,
    "untouched": alike((_PROBE,)),
    "scalar": torch.scalar_tensor,
    "is_recording": torch.is_grad_enabled,
    "record": record,
    "unwatched": UNWATCHED,
    "numbers": frozenset((bool, int, float)),
    "RunError": RunError,
    "Cell": Cell,
    "given_back": given_back,
    "lent": lent,
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
    guards_hold: Check
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
        self._entry: Final = entry
        self._device: Final = device
        self._compiled: Final = compiled
        self._state: Final = _state()
        self._known: Final[dict[tuple[Any, ...], list[Any]]] = {}
        explicit = range(entry.models, len(entry.parameters))
        found = (kind_of(entry.parameters[n], entry.tensors_in(n)) for n in explicit)
        kinds = (*[(ArgumentKind.MODEL, "")] * (entry.models // 2), *found)
        models = {n: v for n, v in enumerate(values) if kinds[n][0] is ArgumentKind.MODEL}
        names: dict[str, Any] = _SHARED | self._state | _of_calls(entry, device, around)
        names |= {"known": self._known, "other": self._other, "settle": self._settle}
        for place, model in models.items():
            names |= _of_model(place, model)
        way, may_record, finish = Way.JOINED, False, None
        if compiled is not None:
            has_data = any(f"look_v{n}" in names for n in range(len(kinds)))
            whole, finish = None, entry.finishing(compiled, device)
            if not models and not has_data:
                whole = compiled.direct(lambda *args: around.general(args, {}))
            if whole is not None and entry.gives_tensors:
                finish = None
            way = Way.BARE if compiled.is_bare else Way.HOST
            way = way if whole is None else Way.WHOLE
            # Of what requires no grad torch records nothing; parameters of models do.
            may_record = bool(models) or not (entry.joins and compiled.requires_no_grad)
            names |= {"whole": whole, "finish": finish, "located": compiled.located}
        self._form: Final = Form(
            kinds,
            entry.models // 2,
            tuple(n for n, m in models.items() if m.blueprint.state),
            way,
            entry.joins,
            may_record,
            finish is not None,
            is_guarded=not around.guards_hold.holds_always,
            is_optimized=bool(around.updated),
            is_made=around.made is not None,
        )
        exec(code_of(self._form), names)
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

    def add(self, values: Sequence[Any], host: Sequence[Any], run: Callable[..., Any]) -> None:
        """Let calls be direct whose arguments are like these, which have been checked, and `host`
        are their values in host code, for which `run` does the call."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        compared: list[torch.Tensor] = []
        own: list[Any] = []
        joins, is_whole = False, True
        implicit = self._form.models
        for place, ((kind, count), value) in enumerate(zip(self._form.kinds, values, strict=True)):
            match kind:
                case ArgumentKind.MODEL:
                    compared += value.blueprint.read(value.tables)
                    own += (value.blueprint, value.training)
                    joins = joins or (place < implicit and value.is_trainable)
                case ArgumentKind.TENSOR:
                    compared.append(value)
                    joins = joins or value.requires_grad
                case ArgumentKind.NUMBER | ArgumentKind.FLOAT:
                    own.append(value.__class__)
                    joins = joins or getattr(value, "requires_grad", False)
                case ArgumentKind.RECORD:
                    known = self._names[f"look_v{place}"](value)
                    is_whole = is_whole and len(known.given) == int(count)
                    compared += known.given
                    joins = joins or known.requires_grad
                case ArgumentKind.DATA:
                    pass
        check = alike(compared) if is_whole else never
        like = [check, joins, run, None, 0, *own]
        if self._form.may_settle and is_whole:
            like[TRIES] = _MOST_TRIES + 1
            self._settle(like, host)
        self._known[self._key(*values)] = self._names["latest"] = like

    def _other(
        self, like: list[Any], key: tuple[Any, ...], compared: Sequence[torch.Tensor]
    ) -> list[Any] | None:
        """Return what is known of calls, where the tensors are not like those that `like` compares
        with; None for a call that is not direct."""
        if casts() or is_watched():
            return None
        found = self._known.get(key)
        if found is None or found is not like or found[CHECK] is never:
            return found
        # They lie in memory in another way, or are those of `torch.inference_mode`.
        found = self._known[key] = [alike(compared), *found[1:]]
        found[SETTLED] = None
        found[TRIES] = _MOST_TRIES + 1 if self._form.may_settle else 0
        return found

    def _settle(self, like: list[Any], host: Sequence[Any]) -> None:
        """Look for the function for values like those of host code."""
        like[TRIES] -= 1
        if self._compiled is None:
            like[SETTLED] = self._entry.node_maker(self._device, host, is_settled=True)
        else:
            like[SETTLED] = self._compiled.settled(host)
        if like[SETTLED] is not None:
            like[TRIES] = 0

    def leave_to(self, other: Direct) -> None:
        """Leave calls that join torch's graph, or those that do not, to others."""
        self._names["otherwise"] = other.call


def _of_calls(entry: Entry, device: torch.device, around: Around) -> dict[str, Any]:
    """Return what the direct calls of an entry need, by names."""
    implicit = entry.models // 2
    places = range(implicit, implicit + len(entry.parameters) - entry.models)
    looks = {n: entry.look(n - implicit + entry.models, device) for n in places}
    given = [(n, look) for n, look in looks.items() if look is not None]
    return {
        **{f"look_v{n}": look for n, look in given},
        **{f"before_v{n}": look.before for n, look in given},
        "arrange": around.arrange,
        "guards_hold": around.guards_hold,
        "same": around.guards_hold.same,
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
        found.add(values, host, compiled.function)
        return found.call

    def _joined_like(
        self, device: torch.device, values: Sequence[Any], host: Sequence[Any], around: Around
    ) -> Callable[..., Any] | None:
        explicit = (kind_of(p, None) for p in self._entry.parameters[self._entry.models :])
        if any(kind in (ArgumentKind.DATA, ArgumentKind.FLOAT) for kind, _ in explicit):
            return None
        function = self._entry.node_maker(device, host)
        if function is None:
            return None
        found = self._joined
        if found is None or not found.serves(None):
            found = self._joined = Direct(self._entry, device, values, around, None)
            self._link()
        found.add(values, host, function)
        return found.call

    def _link(self) -> None:
        if self._plain is not None and self._joined is not None:
            self._plain.leave_to(self._joined)
            self._joined.leave_to(self._plain)


def _state() -> dict[str, Any]:
    return {"override": overriding(), "steps": INSERTIONS.all, "table": REGISTRY.table}
