"""One function under translation: its names, the facts about them, and its place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.names import CaptureReassigned, UnboundName, UndefinedName
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.dims import Dim, DimVar
from ...ir.expr import Expr, TupleGet
from ...ir.traverse import Steps
from ...ir.types import Type
from ..data.data import DataConstructor
from ..source.definition import Definition, Implicit, StaticValue
from ..source.scope import MISSING, Scope, nearest
from ..types.annotation import AnnotationReader
from .environment import Alias, Bound, Entry, Environment, LocalFunction, Static, Unbound
from .models import ModelInstance, Sites
from .program import SourceProgram

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model at hand: where its parameters and its state are, and which model it is."""

    params: Expr
    state: Expr
    instance: ModelInstance


@final
@dataclass(slots=True)
class KnownValues:
    """Facts about expressions, valid for the present bindings of names."""

    version: int = -1
    found: dict[tuple[ast.expr, bool], Static | None] = field(
        default_factory=dict["tuple[ast.expr, bool]", "Static | None"]
    )

    def at(self, version: int) -> dict[tuple[ast.expr, bool], Static | None]:
        """Return the facts at a version of the environment."""
        if version != self.version:
            self.version = version
            self.found.clear()
        return self.found


@final
@dataclass(slots=True)
class Context:
    """One function under translation."""

    program: SourceProgram
    instance: ModelInstance
    walk: Callable[[Context, ast.expr], Steps[Expr]]
    """Translates an expression."""
    body: Callable[[Context, ast.FunctionDef], Steps[Expr]]
    """Translates the statements of a nested `def`."""
    scope: Scope
    annotations: AnnotationReader
    env: Environment = field(default_factory=Environment)
    statics: dict[str, StaticValue] = field(default_factory=dict[str, StaticValue])
    known: KnownValues = field(default_factory=lambda: KnownValues())
    own: ModelParts | None = None
    """The model under translation itself, if it is one."""
    implicit: dict[Definition, ModelParts] = field(default_factory=dict[Definition, ModelParts])
    supplied: dict[Implicit, Expr] = field(default_factory=dict[Implicit, Expr])
    """The implicit values at hand."""
    sites: Sites | None = None
    layers: tuple[int, ...] = ()
    """The copy numbers of the `relay.layers` loops around."""
    wanted: str | None = None
    """The name that the whole right side of an assignment gets, for the names of sites."""
    once: frozenset[str] = frozenset()
    """The names that are assigned at one place only, so they may name sites."""
    grown: Mapping[str, Type] = field(default_factory=dict[str, Type])
    """The local names that are appended to, whose variables hold lists the other way round, and
    what is written of the types of their elements."""
    holding_data: Mapping[str, Type] = field(default_factory=dict[str, Type])
    """The local names that are seen to hold users' data, so no lists, with its types."""
    opened: frozenset[str] = frozenset()
    """The local names whose attributes are read."""
    node: ast.FunctionDef | None = None
    """The function whose statements are under translation, which may be a nested one."""
    lists: frozenset[str] = frozenset()
    """The names that hold lists whenever they have a value."""
    list_names: frozenset[str] = frozenset()
    """Names that hold lists, as their bindings show: an item that they get is not copied."""
    writes_items: bool = False
    """Whether the function assigns to items, so who holds a tensor matters."""
    captured: dict[str, Span] = field(default_factory=dict[str, Span])
    """The local names that a closure which is still named has captured, and where."""
    rounds: dict[str, Span] = field(default_factory=dict[str, Span])
    """The names that each round of a loop around assigns, and the loop."""
    carried: frozenset[str] = frozenset()
    """The names that a loop around carries from one round to the next."""
    displays: dict[ast.expr, Type] = field(default_factory=dict[ast.expr, Type])
    """The element types of list displays that their surroundings determine."""
    assigned: dict[str, Span | None] = field(default_factory=dict[str, "Span | None"])
    """The names that got values since the last ones were noted for a debugger; parameters get
    theirs before any line."""
    defined: set[Span] = field(default_factory=set[Span])
    """The local functions of the source."""
    uses: list[tuple[str, Span]] = field(default_factory=list[tuple[str, Span]])
    """The names that the expression or statement under translation reads itself, and where."""
    computed: dict[Expr, ModelInstance] = field(default_factory=dict[Expr, ModelInstance])
    """The results of arithmetic on records of a model's parameters: such records again."""

    @property
    def definition(self) -> Definition:
        """The function under translation."""
        return self.instance.definition

    @property
    def training(self) -> bool:
        """The mode that operators see: that of the model under translation."""
        return self.instance.training

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.pattern) -> Span:
        """Return the span of a syntax node."""
        return self.definition.source.span(node)

    def expression(self, node: ast.expr) -> Steps[Expr]:
        """Translate an expression that is not the whole right side of an assignment."""
        self.wanted = None
        return self.walk(self, node)

    def expressions(self, nodes: Sequence[ast.expr]) -> Steps[tuple[Expr, ...]]:
        """Translate expressions in order."""
        return tuple((yield in_turn(self.expression(node) for node in nodes)))

    def refuse(self, problem: Problem) -> Expr:
        """Report a mistake; return a placeholder for the expression that has it."""
        self.program.report(problem)
        return placeholder(self.definition.source.head)

    def bind(self, name: str, entry: Bound, span: Span) -> None:
        """Make a local name stand for a value from here on."""
        closure = self.captured.get(name)
        if closure is not None:
            self.program.report(CaptureReassigned(span, name, closure))
        self.env.set(name, entry)
        self.assigned[name] = span

    def local(self, name: str, span: Span) -> Bound | None:
        """Return the value of a local name; None when it is not local. One that may have no value
        here is reported."""
        entry = self.env.find(name)
        if isinstance(entry, Unbound):
            self.program.report(UnboundName(span, name, entry.place, entry.path, entry.is_outer))
            entry = Bound(atom=placeholder(span))
            self.env.set(name, entry)
        return entry

    def named(self, node: ast.expr) -> Entry | None:
        """Return the entry of the local name that an expression is; None for any other."""
        return self.env.find(node.id) if isinstance(node, ast.Name) else None

    def nested(self, node: ast.expr) -> LocalFunction | None:
        """Return the nested function that an expression names; None for any other."""
        entry = self.named(node)
        return entry.function if isinstance(entry, Bound) else None

    def captured_value(self, name: str, span: Span) -> Static | None:
        """Return the value of a name from outside; one that is not defined is reported."""
        value = self.outside(name)
        if value is MISSING:
            known = (*self.env.names(), *self.scope.names())
            self.program.report(UndefinedName(span, name, nearest(name, known)))
            return None
        return Static(value)

    def outside(self, name: str) -> Any:
        """Return the value of a name from outside, MISSING if it has none; a type parameter that is
        a size is that size."""
        value = self.scope.find(name)
        if not isinstance(value, TypeVar):
            return value
        sizes = (
            p.name
            for p in self.program.signature(self.definition).type_params
            if isinstance(p, DimVar)
        )
        return Dim.of(value.__name__) if value.__name__ in sizes else value

    def constructor(self, cls: type, span: Span) -> DataConstructor | None:
        """Return the constructor that a dataclass is; None where it is none, which is reported."""
        return self.program.data.constructor(cls, self.annotations.namespace, span)

    def hold(self, names: Iterator[tuple[str, Span]], why: str) -> None:
        """Note that the values of local names may be aliased from here on."""
        for name, span in names:
            entry = self.env.find(name)
            if isinstance(entry, Bound) and entry.holder is None:
                self.env.set(name, replace(entry, holder=Alias(span, why)))


def in_turn(walks: Iterable[Steps[T]]) -> Steps[list[T]]:
    """Return the results of walks, made one after the other."""
    found: list[T] = []
    for walk in walks:
        found.append((yield walk))  # noqa: PERF401  a comprehension cannot yield
    return found


def field_of(record: Expr, index: int, span: Span) -> Expr:
    """Return a field of a tuple, as an expression."""
    return TupleGet(record, index, span=span)
