"""A program under translation: its functions, signatures, guards and mistakes.

Mistakes are collected, not raised: a wrong expression becomes a placeholder, so one run finds all
that are independent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.sites import EndlessModel, ImplicitNameTaken
from ...diagnostics.diagnostic import Diagnostic, Problem
from ...diagnostics.source import Span
from ...ir.expr import Expr, Function, Var
from ...ir.module import AdtDef
from ...ir.names import Names
from ...ir.traverse import substitute
from ...ir.types import Type
from ...operators.captured import CapturedInteger, CapturedNumber
from ..data.data import DataTypes
from ..data.methods import CALLED, Method, choice, kind_of, method
from ..source.definition import Definition, Implicit, Meaning, StaticValue
from ..source.flow import annotated_names
from ..source.optimizers import OptimizerGuard, OptimizerUse, Recipe
from ..source.residual import Residual
from ..source.scope import MISSING, CapturedName, Guard, Scope, is_frozen
from ..source.sharing import CallSharing, Unit
from ..source.unions import Union, is_data_class
from ..types.annotation import AnnotationReader
from .model_origins import ModelOrigin, Updates
from .models import ModelInstance, ModelSpec, RecursiveModel, Sites, build_spec
from .row_tables import row_tables
from .signature import (
    Parameter,
    Signature,
    implicit_parameter,
    read_signature,
    with_implicits,
)

Requirements: TypeAlias = Mapping[Definition, Mapping[str, StaticValue]]
"""The models that a function mentions, with the static arguments of the first mention."""
Needs: TypeAlias = Mapping[Definition | Implicit, Mapping[str, StaticValue]]
"""The requirements of a function on its callers: models, and implicit values."""


@final
@dataclass(frozen=True, slots=True)
class ModelVar:
    """A variable of a function that holds a model, or a part of one: `params` or `state`."""

    function: str
    var: Var
    part: Literal["params", "state", "model", "models"]
    instance: ModelInstance
    place: ModelOrigin | None = None
    """Where an explicit model comes from, which determines its optimiser."""


@final
@dataclass(frozen=True, slots=True)
class _Later:
    """An expression that depends on the optimiser of the models from some places."""

    places: tuple[ModelOrigin, ...]
    make: Callable[[OptimizerUse | None], Expr]


@final
class SourceProgram:
    """The functions of a program under translation, each translated once."""

    def __init__(
        self,
        requirements: Callable[[SourceProgram, Definition], Mapping[Definition, Needs]],
        translate: Callable[[SourceProgram, ModelInstance], None],
        varying: Collection[CapturedName] = (),
        *,
        is_debugged: bool = False,
    ) -> None:
        self.is_debugged: Final = is_debugged
        """Whether the program notes the values of local names, for a debugger."""
        self.has_breakpoint = False
        self._varying: Final = varying
        self._captured: Final[dict[CapturedName, CapturedNumber | CapturedInteger]] = {}
        self.updates: Final = Updates()
        self._later: Final[dict[Var, _Later]] = {}
        self.started: Final[dict[OptimizerUse, None]] = {}
        """The optimisers whose learning rate is in the program, in models that it makes."""
        self._optimizers: Final[dict[OptimizerUse, None]] = {}
        self.functions: Final[dict[str, Function]] = {}
        self.data: Final = DataTypes(self.report)
        self.residuals: Final[dict[Residual, str]] = {}
        """The names of the specialised functions that the program contains."""
        self.exports: Final[dict[str, ModelInstance]] = {}
        """The models that the program exports, by the data type of the exported values."""
        self.passed: Final[dict[str, Expr]] = {}
        """The relay functions that a script passes to the entry, by parameter."""
        self.made: Final[dict[Var, Parameter]] = {}
        """The arguments of the calls that made functions which a script passes."""
        self.pure: Final[dict[tuple[Definition, ModelInstance], str]] = {}
        """The functions that `relay.with_params` gives, by what they are made of."""
        self.sites: Final[dict[ModelInstance, Sites]] = {}
        self.summaries: Final[dict[Unit, CallSharing]] = {}
        """The aliases between functions and their parameters, computed on demand."""
        self.pending: Final[deque[ModelInstance]] = deque()
        self.done: Final[set[ModelInstance]] = set()
        self.model_vars: Final[list[ModelVar]] = []
        """Variables that hold a model's parts; they get their types once all sites are known."""
        self._names: Final[dict[ModelInstance, str]] = {}
        self._active: Final[list[ModelInstance]] = []
        self._with_tables: Final[set[ModelInstance]] = set()
        """The models whose tables have been found."""
        self._translate: Final = translate
        self._fresh: Final = Names()
        self._scopes: Final[dict[Definition, Scope]] = {}
        self._namespaces: Final[dict[Definition, Mapping[str, Any]]] = {}
        self._signatures: Final[dict[Definition, Signature]] = {}
        self._methods: Final[dict[tuple[type, str], Method | None]] = {}
        self._choices: Final[dict[tuple[object, str, tuple[type, ...]], Definition]] = {}
        self._in_sight: Final[dict[int, tuple[Mapping[str, Any], list[type]]]] = {}
        """The dataclasses in each namespace, by its identity."""
        self._declared: Final[dict[Definition, Signature]] = {}
        self._requirements: Final[dict[Definition, Needs]] = {}
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
        """Return the use of a captured optimiser in the program, which must be translated anew when
        it becomes another."""
        found = OptimizerUse(recipe.rule, optimizer, recipe.lr)
        self._optimizers[found] = None
        return found

    def later(
        self,
        places: tuple[ModelOrigin, ...],
        span: Span,
        make: Callable[[OptimizerUse | None], Expr],
    ) -> Var:
        """Return the placeholder of an expression that is made once all is translated, of the
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
        """Drop all mistakes but the first `count`; return whether there were more."""
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
            needs = self._needs(definition)
            implicits = [each for each in needs if isinstance(each, Implicit)]
            scope = self.scope(definition)
            reader = AnnotationReader(scope.namespace(), self.report, self.data)
            made = [implicit_parameter(each, definition, reader) for each in implicits]
            declared = self.declared(definition)
            self._expect_other_names(definition, declared, made)
            self._signatures[definition] = with_implicits(declared, made)
        return self._signatures[definition]

    def _expect_other_names(
        self, definition: Definition, declared: Signature, implicits: Sequence[Parameter]
    ) -> None:
        """Report an implicit value that has the name of another, or of a parameter."""
        taken = {p.name for p in declared.parameters}
        for each in implicits:
            if each.name in taken:
                self.report(ImplicitNameTaken(each.span, definition.name, each.name))
                self.guesses = True
            taken.add(each.name)

    def declared(self, definition: Definition) -> Signature:
        """Return the signature of a definition as it is written, without implicit values."""
        if definition not in self._declared:
            scope = self.scope(definition)
            found = read_signature(definition, scope, self.report, self.data)
            choices = () if definition.owner is None else definition.owner.choices
            results = {None if d is None else self.declared(d).result for _, d in choices}
            self._declared[definition] = replace(found, result=None) if len(results) > 1 else found
        return self._declared[definition]

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
        """Return the meaning of `owner.name`: of a class a method as a function, of an instance,
        whose type decides, nothing that is known."""
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
        needs = self._needs(definition)
        return {d: statics for d, statics in needs.items() if isinstance(d, Definition)}

    def _needs(self, definition: Definition) -> Needs:
        if definition not in self._requirements:
            self._requirements.update(self._find_requirements(self, definition))
        return self._requirements[definition]

    def function_name(self, instance: ModelInstance) -> str:
        """Return the name of a function in the module; it will be translated."""
        if instance not in self._names:
            self._names[instance] = self._fresh.fresh(_written_name(instance))
            self.pending.append(instance)
        return self._names[instance]

    def result_of(self, name: str) -> Type | None:
        """Return the annotated result type of a function of the module; None if there is none."""
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

    def _run(self, instance: ModelInstance) -> None:
        if instance in self.done:
            return
        self.done.add(instance)
        self._active.append(instance)
        self._translate(self, instance)
        self._active.pop()

    def spec(self, instance: ModelInstance) -> ModelSpec:
        """Return all names of a model's hidden values, translating what that needs."""
        try:
            return build_spec(instance, self._find_sites)
        except RecursiveModel as error:
            self.report(EndlessModel(error.site.span, error.site.instance.definition.name))
            self.guesses = True
            return ModelSpec(instance.definition, instance.statics, (), ())

    def _find_sites(self, instance: ModelInstance) -> Sites:
        name = self.function_name(instance)
        self._run(instance)
        if instance in self._active:
            # Its sites are not all known: it would have to exist before it is defined.
            self.report(EndlessModel(instance.definition.source.head, instance.definition.name))
            self.guesses = True
        elif instance not in self._with_tables:
            self._with_tables.add(instance)
            sites = self.sites[instance]
            sites.mark_tables(row_tables(name, len(sites.params), self._translated))
        return self.sites[instance]

    def _translated(self, name: str) -> Function | None:
        """Return a function of the module, translated now if need be; None if its translation is
        not over, or failed."""
        for instance in [i for i, n in self._names.items() if n == name]:
            self._run(instance)
        return self.functions.get(name)


def _written_name(instance: ModelInstance) -> str:
    name = instance.definition.name
    if instance.statics:
        name += f"[{', '.join(f'{n}={v!r}' for n, v in instance.statics)}]"
    parts = (*(m for _, m in instance.models), *instance.implicit)
    trained = instance.training or any(p.training for p in parts)
    return f"{name}.train" if trained else name
