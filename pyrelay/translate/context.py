"""What is known while a program is translated: the whole program, and one function of it.

`Program` collects functions, signatures, guards and mistakes; a `Context` is one function under
translation. Mistakes are collected, not raised: a wrong expression becomes a placeholder, so one
run finds all that are independent.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, final

from ..diagnostics.catalogue.names import (
    CaptureReassigned,
    UnboundName,
    UndefinedName,
)
from ..diagnostics.catalogue.sites import EndlessModel
from ..diagnostics.diagnostic import Diagnostic, Problem
from ..diagnostics.source import Span
from ..ir.dims import Dim, DimVar
from ..ir.expr import Expr, Function, TupleGet, Var
from ..ir.module import AdtDef
from ..ir.names import Names
from ..ir.placeholder import placeholder
from ..ir.traverse import Steps, substitute
from ..ir.types import Type
from ..operators.captured import CapturedInteger, CapturedNumber
from .data.data import DataConstructor, DataTypes
from .data.methods import CALLED, Method, choice, kind_of, method
from .data.unions import Union, is_data_class
from .models.models import Instance, ModelSpec, RecursiveModel, Sites, build_spec
from .models.optimizer_places import Place as ModelPlace
from .models.optimizer_places import Updates
from .models.optimizers import OptimizerGuard, OptimizerUse, Recipe
from .names.environment import Bound, Environment, Holder, Static, Unbound
from .names.flow import annotated_names
from .names.scope import MISSING, Guard, Place, Scope, is_frozen, nearest
from .source.definition import Definition, Kind, Meaning, StaticValue
from .source.signature import Signature, read_signature
from .types.annotation import AnnotationReader

if TYPE_CHECKING:
    from .names.sharing import Summary
    from .names.summaries import Unit

T = TypeVar("T")
Requirements: TypeAlias = Mapping[Definition, Mapping[str, StaticValue]]
"""The models that a function mentions, with the static arguments of the first mention."""


@final
class Program:
    """The functions of a program under translation, each translated once."""

    def __init__(
        self,
        requirements: Callable[[Program, Definition], Requirements],
        translate: Callable[[Program, Instance], None],
        varying: Collection[Place] = (),
        *,
        is_debugged: bool = False,
    ) -> None:
        self.is_debugged: Final = is_debugged
        """Whether the program notes the values of local names, for a debugger."""
        self.has_breakpoint = False
        self._varying: Final = varying
        self._captured: Final[dict[Place, CapturedNumber | CapturedInteger]] = {}
        self.updates: Final = Updates()
        self._later: Final[dict[Var, _Later]] = {}
        self.started: Final[dict[OptimizerUse, None]] = {}
        """The optimisers whose learning rate is in the program, in models that it makes."""
        self._optimizers: Final[dict[OptimizerUse, None]] = {}
        self.functions: Final[dict[str, Function]] = {}
        self.data: Final = DataTypes(self.report)
        self.exports: Final[dict[str, Instance]] = {}
        """The models that the program exports, by the data type of the exported values."""
        self.passed: Final[dict[str, Expr]] = {}
        """The relay functions that a script passes to the entry, by parameter."""
        self.pure: Final[dict[tuple[Definition, Instance], str]] = {}
        """The functions that `relay.with_params` gives, by what they are made of."""
        self.sites: Final[dict[Instance, Sites]] = {}
        self.summaries: Final[dict[Unit, Summary]] = {}
        """What functions share with their parameters, as far as it has been asked for."""
        self.pending: Final[deque[Instance]] = deque()
        self.done: Final[set[Instance]] = set()
        self.model_vars: Final[list[ModelVar]] = []
        """Variables that hold a model's parts; they get their types once all sites are known."""
        self._names: Final[dict[Instance, str]] = {}
        self._active: Final[list[Instance]] = []
        self._translate: Final = translate
        self._fresh: Final = Names()
        self._scopes: Final[dict[Definition, Scope]] = {}
        self._namespaces: Final[dict[Definition, Mapping[str, Any]]] = {}
        self._signatures: Final[dict[Definition, Signature]] = {}
        self._methods: Final[dict[tuple[type, str], Method | None]] = {}
        self._choices: Final[dict[tuple[object, str, tuple[type, ...]], Definition]] = {}
        self._in_sight: Final[dict[int, tuple[Mapping[str, Any], list[type]]]] = {}
        """The dataclasses in each namespace, by its identity."""
        self._requirements: Final[dict[Definition, Requirements]] = {}
        self._find_requirements: Final = requirements
        self._problems: Final[dict[tuple[Any, ...], Diagnostic]] = {}
        self.guesses = False
        """Whether something was guessed after a mistake, so that types say nothing."""

    @property
    def adts(self) -> dict[str, AdtDef]:
        """The data types by name."""
        return self.data.adts

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The mistakes found so far, each place once."""
        return tuple(self._problems.values())

    @property
    def guards(self) -> tuple[Guard | OptimizerGuard, ...]:
        """The captured names that the translation read, and the captured optimisers."""
        captured = [
            OptimizerGuard(o.source, o.rule, o.lr if o in self.started else None)
            for o in self._optimizers
        ]
        scopes = self._scopes.values()
        return (*(g for s in scopes for g in s.guards), *self.data.guards, *captured)

    def captured_optimizer(self, optimizer: Any, recipe: Recipe) -> OptimizerUse:
        """Return what a captured optimiser is to the program, which must be translated anew when it
        becomes another."""
        found = OptimizerUse(recipe.rule, optimizer, recipe.lr)
        self._optimizers[found] = None
        return found

    def later(
        self,
        places: tuple[ModelPlace, ...],
        span: Span,
        make: Callable[[OptimizerUse | None], Expr],
    ) -> Var:
        """Return what stands for an expression that is made once all is translated, of the
        optimiser of the models that come from some places."""
        var = Var("later", span=span)
        self._later[var] = _Later(places, make)
        return var

    def resolve_later(self) -> dict[str, Function]:
        """Return the functions, with the expressions that depend on the optimisers of models."""
        made: dict[Var, Expr] = {}
        for var, each in self._later.items():
            found = self.updates.optimizers(each.places)
            made[var] = each.make(found[0] if found else None)
        return {n: replace(f, body=substitute(f.body, made)) for n, f in self.functions.items()}

    def report(self, problem: Problem) -> None:
        """Add a mistake."""
        found = problem.diagnostic()
        place = (
            None if found.primary is None else (found.primary.span.start, found.primary.span.end)
        )
        self._problems.setdefault((found.code, found.title, place), found)

    def forget(self, count: int) -> bool:
        """Drop all mistakes but the first `count`; tell whether there were more."""
        later = list(self._problems)[count:]
        for key in later:
            del self._problems[key]
        return bool(later)

    def scope(self, definition: Definition) -> Scope:
        """Return the captured names of a definition."""
        if definition not in self._scopes:
            fixed = annotated_names(definition.source.node) if self._varying else ()
            known = (self._varying, fixed, self._captured, self._named_method)
            found = Scope(definition.function, definition.around, *known)
            self._scopes[definition] = found
        return self._scopes[definition]

    def namespace(self, definition: Definition) -> Mapping[str, Any]:
        """Return the names in scope of a definition."""
        if definition not in self._namespaces:
            self._namespaces[definition] = self.scope(definition).namespace()
        return self._namespaces[definition]

    def signature(self, definition: Definition) -> Signature:
        """Return the signature of a definition."""
        if definition not in self._signatures:
            scope = self.scope(definition)
            found = read_signature(definition, scope, self.report, self.data)
            choices = () if definition.owner is None else definition.owner.choices
            results = {None if d is None else self.signature(d).result for _, d in choices}
            self._signatures[definition] = (
                replace(found, result=None) if len(results) > 1 else found
            )
        return self._signatures[definition]

    def method(self, cls: type, name: str, seen: Mapping[str, Any]) -> Method | None:
        """Return the method that a dataclass has under a name; None if it has none. `seen` are the
        names in scope where it is mentioned. Raises NotData."""
        if (cls, name) not in self._methods:
            has_one = kind_of(cls, name) is not None
            union = self.data.union_of(cls, seen) if has_one else None
            found = None if union is None else method(cls, name, union, seen)
            self._methods[cls, name] = found
        return self._methods[cls, name]

    def choice(
        self, union: Union, name: str, methods: Sequence[tuple[type, Method | None]]
    ) -> Definition:
        """Return the function that calls the method of one name of an instance's class."""
        key = (union.key, name, tuple(c for c, _ in methods))
        if key not in self._choices:
            self._choices[key] = choice(union, methods)
        return self._choices[key]

    def _named_method(self, owner: object, name: str, seen: Callable[[], Mapping[str, Any]]) -> Any:
        """Return what `owner.name` is: of a class a method as a function, of an instance, whose
        type decides, nothing that is known."""
        if is_frozen(owner) and kind_of(type(owner), name) in CALLED:
            return MISSING
        if not is_data_class(owner) or kind_of(owner, name) not in CALLED:
            return None
        found = self.method(owner, name, seen())
        return None if found is None else Meaning(found.definition)

    def data_classes(self, seen: Mapping[str, Any]) -> Sequence[type]:
        """Return the dataclasses among names in scope, and those of the program's data types."""
        if id(seen) not in self._in_sight:
            self._in_sight[id(seen)] = seen, [v for v in seen.values() if is_data_class(v)]
        known = (c.cls for t in self.data.types.values() for c in t.constructors)
        return tuple(dict.fromkeys((*self._in_sight[id(seen)][1], *known)))

    def requirements(self, definition: Definition) -> Requirements:
        """Return the models that a function mentions, itself or through functions it calls."""
        if definition.kind is Kind.MODEL:
            return {}
        if definition not in self._requirements:
            self._requirements[definition] = self._find_requirements(self, definition)
        return self._requirements[definition]

    def function_name(self, instance: Instance) -> str:
        """Return the name of a function in the module; it will be translated."""
        if instance not in self._names:
            self._names[instance] = self._fresh.fresh(_written_name(instance))
            self.pending.append(instance)
        return self._names[instance]

    def result_of(self, name: str) -> Type | None:
        """Return the annotated type of what a function of the module returns; None if there is
        none."""
        named = (i.definition for i, n in self._names.items() if n == name)
        definition = next(named, None)
        return None if definition is None else self.signature(definition).result

    def fresh_name(self, hint: str) -> str:
        """Return a name for a generated function of the module."""
        return self._fresh.fresh(hint)

    def translate_pending(self) -> None:
        """Translate all functions that have been named and are not translated yet."""
        while self.pending:
            self._run(self.pending.popleft())

    def _run(self, instance: Instance) -> None:
        if instance in self.done:
            return
        self.done.add(instance)
        self._active.append(instance)
        self._translate(self, instance)
        self._active.pop()

    def spec(self, instance: Instance) -> ModelSpec:
        """Return all names of a model's hidden values, translating what that needs."""
        try:
            return build_spec(instance, self._find_sites)
        except RecursiveModel as error:
            self.report(EndlessModel(error.site.span, error.site.instance.definition.name))
            self.guesses = True
            return ModelSpec(instance.definition, instance.statics, (), ())

    def _find_sites(self, instance: Instance) -> Sites:
        self.function_name(instance)
        self._run(instance)
        if instance in self._active:
            # Its sites are not all known: it would have to exist before it is defined.
            self.report(EndlessModel(instance.definition.source.head, instance.definition.name))
            self.guesses = True
        return self.sites[instance]


def _written_name(instance: Instance) -> str:
    name = instance.definition.name
    if instance.statics:
        name += f"[{', '.join(f'{n}={v!r}' for n, v in instance.statics)}]"
    parts = (*(m for _, m in instance.models), *instance.implicit)
    trained = instance.training or any(p.training for p in parts)
    return f"{name}.train" if trained else name


@final
@dataclass(frozen=True, slots=True)
class ModelVar:
    """A variable of a function that holds a model, or a part of one: `params` or `state`."""

    function: str
    var: Var
    part: Literal["params", "state", "model"]
    instance: Instance
    place: ModelPlace | None = None
    """Where an explicit model comes from, which determines its optimiser."""


@final
@dataclass(frozen=True, slots=True)
class _Later:
    """An expression that depends on the optimiser of the models from some places."""

    places: tuple[ModelPlace, ...]
    make: Callable[[OptimizerUse | None], Expr]


@final
@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model at hand: where its parameters and its state are, and which model it is."""

    params: Expr
    state: Expr
    instance: Instance


@final
@dataclass(slots=True)
class KnownValues:
    """What was found out of expressions while the names stood for what they stand for now."""

    version: int = -1
    found: dict[tuple[ast.expr, bool], Static | None] = field(
        default_factory=dict["tuple[ast.expr, bool]", "Static | None"]
    )

    def at(self, version: int) -> dict[tuple[ast.expr, bool], Static | None]:
        """Return what is known at a version of the environment."""
        if version != self.version:
            self.version = version
            self.found.clear()
        return self.found


@final
@dataclass(slots=True)
class Context:
    """One function under translation."""

    program: Program
    instance: Instance
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
    list_names: frozenset[str] = frozenset()
    """Names that hold lists, as their bindings show: an item that they get is not copied."""
    writes_items: bool = False
    """Whether the function assigns to items, so who holds a tensor matters."""
    captured: dict[str, Span] = field(default_factory=dict[str, Span])
    """The local names that a closure which is still named has captured, and where."""
    rounds: dict[str, Span] = field(default_factory=dict[str, Span])
    """The names that each round of a loop around assigns, and the loop."""
    displays: dict[ast.expr, Type] = field(default_factory=dict[ast.expr, Type])
    """The types of the elements of lists written out where something else tells them."""
    assigned: dict[str, Span | None] = field(default_factory=dict[str, "Span | None"])
    """The names that got values since the last ones were noted for a debugger; parameters get
    theirs before any line."""
    defined: set[Span] = field(default_factory=set[Span])
    """The local functions of the source."""
    uses: list[tuple[str, Span]] = field(default_factory=list[tuple[str, Span]])
    """The names that the expression or statement under translation reads itself, and where."""
    computed: dict[Expr, Instance] = field(default_factory=dict[Expr, Instance])
    """What arithmetic on records of a model's parameters gives: such records again."""

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
        """Report a mistake; give a placeholder for the expression that has it."""
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
        """Note that the values of local names may from here on be held elsewhere too."""
        for name, span in names:
            entry = self.env.find(name)
            if isinstance(entry, Bound) and entry.holder is None:
                self.env.set(name, replace(entry, holder=Holder(span, why)))


def in_turn(walks: Iterable[Steps[T]]) -> Steps[list[T]]:
    """Return the results of walks, made one after the other."""
    found: list[T] = []
    for walk in walks:
        found.append((yield walk))  # noqa: PERF401  a comprehension cannot yield
    return found


def field_of(record: Expr, index: int, span: Span) -> Expr:
    """Return a field of a tuple, as an expression."""
    return TupleGet(record, index, span=span)
