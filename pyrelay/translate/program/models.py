"""Models as data: the sites of hidden values, and the tree of names that describes a model.

Each lexical call site of a parameterised operator, or of another model, is a site. Its values are
fields of the tuples `params` and `state` that the model's IR function gets, in source order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import field, replace
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.sites import RepeatedName
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ...ir.dims import Dim
from ...ir.expr import Tuple
from ...ir.op import HiddenKind, Init
from ...ir.traverse import Steps, run
from ...ir.types import UNIT, UNKNOWN, RefType, TensorType, TupleType, Type, float64, tensor_type
from ...operators.primitive.random import KEY
from ..source.definition import Definition, StaticValue
from ..source.optimizers import OptimizerRule


@final
@dataclass(frozen=True, slots=True)
class ModelInstance:
    """One translation of a definition: its static arguments, and the models it works with.

    `training` is the mode of a model; `models` are its explicit parameters `Model[net]`, `implicit`
    the models it mentions, each with mode and static arguments. `frozen` are the dotted names of
    the parameters of a model that require no gradient.
    """

    definition: Definition
    statics: tuple[tuple[str, StaticValue], ...] = ()
    training: bool = False
    models: tuple[tuple[str, ModelInstance], ...] = ()
    implicit: tuple[ModelInstance, ...] = ()
    frozen: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A hidden value: its name within its model, where it lives, and how it starts. One that is
    frozen is updated by nothing, and in a table the model only looks rows up."""

    name: str
    holder: HiddenKind
    init: Init
    span: Span
    is_frozen: bool = False
    is_table: bool = False


@final
@dataclass(frozen=True, slots=True)
class SubModelSpec:
    """A model inside a model."""

    name: str
    model: ModelSpec
    span: Span


@final
@dataclass(frozen=True, slots=True)
class ModelSpec:
    """All that is known of a model without shapes: the tree of its parameters and of its state."""

    definition: Definition
    statics: tuple[tuple[str, StaticValue], ...]
    params: tuple[ValueSpec | SubModelSpec, ...]
    state: tuple[ValueSpec | SubModelSpec, ...]

    @property
    def has_state(self) -> bool:
        """Whether there is a buffer or a key in it, or in a model inside."""
        pending = list(self.state)
        while pending:
            part = pending.pop()
            if isinstance(part, ValueSpec):
                return True
            pending += part.model.state
        return False

    @property
    def is_frozen(self) -> bool:
        """Whether no parameter requires a gradient, here or in a model inside."""
        pending = list(self.params)
        while pending:
            part = pending.pop()
            if isinstance(part, SubModelSpec):
                pending += part.model.params
            elif not part.is_frozen:
                return False
        return True


def no_state(spec: ModelSpec, span: Span) -> Tuple:
    """Return the state of a model that has none: tuples of tuples. Models nest as deep as
    written."""
    inside = (no_state(p.model, span) for p in spec.state if isinstance(p, SubModelSpec))
    return Tuple(tuple(inside), span=span)


@final
@dataclass(frozen=True, slots=True)
class SubSite:
    """A site of another model."""

    name: str
    instance: ModelInstance
    span: Span


LR: Final = tensor_type(float64)
"""The type of the learning rate in what an optimiser remembers, whatever its parameters' types."""

COUNT: Final = float64
"""The dtype of the numbers of steps that an optimiser has taken, one for each parameter: a float,
so that a step computes powers with them and they stay on the device."""

Site: TypeAlias = ValueSpec | SubSite
SiteKey: TypeAlias = tuple[Span, str]
"""A place in the text, and which of the hidden things there: what makes a site lexical."""


@final
@dataclass(slots=True)
class Sites:
    """The sites of one model, as its translation finds them."""

    params: list[Site] = field(default_factory=list[Site])
    state: list[Site] = field(default_factory=list[Site])
    _ordinals: Counter[str] = field(default_factory=Counter[str])
    _lexical: dict[SiteKey, str] = field(default_factory=dict["SiteKey", str])

    def name(
        self,
        key: SiteKey,
        wanted: str | None,
        callee: str,
        layers: tuple[int, ...],
        *,
        is_model: bool = False,
    ) -> str:
        """Return the name of a site: the wanted one, or that of the operator or model called, with
        an ordinal but for the first site of a model; copies that `relay.layers` makes are
        numbered."""
        base = self._lexical.get(key)
        if base is None:
            base = wanted
            if base is None:
                self._ordinals[callee] += 1
                count = self._ordinals[callee]
                base = f"{callee}_{count}" if count > 1 or not (layers or is_model) else callee
            self._lexical[key] = base
        return ".".join((base, *map(str, layers)))

    def add(self, site: ValueSpec) -> int:
        """Add a hidden value; return its place among the parameters, or in the state."""
        fields = self.params if site.holder is HiddenKind.PARAMETER else self.state
        fields.append(site)
        return len(fields) - 1

    def add_model(self, site: SubSite) -> tuple[int, int]:
        """Add a model; return its places among the parameters and in the state."""
        self.params.append(site)
        self.state.append(site)
        return len(self.params) - 1, len(self.state) - 1

    def mark_tables(self, places: Collection[int]) -> None:
        """Note which of the parameters are tables."""
        for place in places:
            site = self.params[place]
            if isinstance(site, ValueSpec):
                self.params[place] = replace(site, is_table=True)

    def check(self, report: Callable[[Problem], None]) -> None:
        """Report sites of one name: names are how parameters are stored and loaded."""
        first: dict[str, Span] = {}
        repeated: set[Span] = set()
        inside = (s for s in self.state if not isinstance(s, SubSite))
        for site in (*self.params, *inside):
            if site.name in first and site.span not in repeated:
                report(RepeatedName(site.span, site.name, first[site.name]))
                repeated.add(site.span)
            first.setdefault(site.name, site.span)


FindSites: TypeAlias = Callable[[ModelInstance], Sites]


class RecursiveModel(Exception):  # noqa: N818  becomes a diagnostic where the model is mentioned
    """A model contains itself through another one, so its parameters would never end."""

    def __init__(self, site: SubSite) -> None:
        super().__init__(site.name)
        self.site = site


def build_spec(instance: ModelInstance, find: FindSites) -> ModelSpec:
    """Return the whole tree of a model. Raises RecursiveModel when it has no end."""
    return run(_spec(instance, find, (), {}))


def _spec(
    instance: ModelInstance,
    find: FindSites,
    around: tuple[ModelInstance, ...],
    done: dict[ModelInstance, ModelSpec],
) -> Steps[ModelSpec]:
    if instance in done:
        return done[instance]
    sites, inside = find(instance), (*around, instance)
    subs: dict[SubSite, SubModelSpec] = {}
    for site in sites.params:
        if isinstance(site, SubSite):
            if site.instance in inside:
                raise RecursiveModel(site)
            spec = yield _spec(site.instance, find, inside, done)
            subs[site] = SubModelSpec(site.name, spec, site.span)
    done[instance] = ModelSpec(
        instance.definition,
        instance.statics,
        tuple(subs[s] if isinstance(s, SubSite) else s for s in sites.params),
        tuple(subs[s] if isinstance(s, SubSite) else s for s in sites.state),
    )
    return done[instance]


def params_type(spec: ModelSpec) -> Type:
    """Return the type of a model's parameters, with holes where inference finds the shapes."""
    return run(_tree_type(spec, state=False))


def state_type(spec: ModelSpec) -> Type:
    """Return the type of a model's state: a cell for each value."""
    return run(_tree_type(spec, state=True))


def model_type(spec: ModelSpec, memory: Type) -> Type:
    """Return the type of an explicit `Model[net]`: a reference to its parameters and to the memory
    of its optimiser, and the state."""
    return TupleType((RefType(TupleType((params_type(spec), memory))), state_type(spec)))


def memory_type(spec: ModelSpec, rule: OptimizerRule | None) -> Type:
    """Return the type of what an optimiser remembers of a model; unit where there is none."""
    if rule is None:
        return UNIT
    moments = tuple(params_type(spec) for _ in range(rule.moments))
    counts = TensorType((Dim.of(len(values_of(spec))),), COUNT)
    return TupleType((LR, counts, TupleType(moments)))


def values_of(spec: ModelSpec) -> list[ValueSpec]:
    """Return the parameters of a model in order, with those of the models inside."""
    found: list[ValueSpec] = []
    pending: list[ValueSpec | SubModelSpec] = [*reversed(spec.params)]
    while pending:
        part = pending.pop()
        if isinstance(part, SubModelSpec):
            pending += reversed(part.model.params)
        else:
            found.append(part)
    return found


def _tree_type(spec: ModelSpec, *, state: bool) -> Steps[Type]:
    fields: list[Type] = []
    for part in spec.state if state else spec.params:
        if isinstance(part, SubModelSpec):
            fields.append((yield _tree_type(part.model, state=state)))
        else:
            # A key is not even read in evaluation mode, so its type cannot be inferred from its
            # use.
            ty = KEY if part.holder is HiddenKind.KEY else UNKNOWN
            fields.append(RefType(ty) if state else ty)
    return TupleType(tuple(fields))
