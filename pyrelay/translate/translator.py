"""From a decorated Python function to a module of the IR.

`translate` takes the entry and everything it reaches: functions, models, and what transforms made
of them. The result is a tree (stage "translated"): types stand only where the user wrote them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, final

from ..config import is_debugging
from ..dataclass import dataclass
from ..diagnostics.catalogue.sites import UnknownModel
from ..diagnostics.diagnostic import CheckError, Diagnostic
from ..diagnostics.source import Span
from ..ir.constant import placeholder
from ..ir.expr import Binding, Expr, Function, Var
from ..ir.module import Module
from ..ir.traverse import Steps, let, replace_params, run
from ..ir.types import UNKNOWN, AdtType, Type
from ..prelude.library import LIST, link
from . import entries
from .blocks.list_append import grown_in
from .calls.passed_models import annotated_definition
from .calls.user_rules import with_rules
from .control.debugging import source_functions
from .control.statements import function_body
from .data.data import DataType
from .expressions.expressions import expression
from .expressions.method_calls import chosen_method, own_class
from .models.requirements import find_requirements
from .models.tied_shapes import tied
from .names.alias_check import writes_items
from .names.data_names import data_names
from .program.context import Context, ModelParts
from .program.derived import derived_signature
from .program.described import Described, numbers_in
from .program.environment import Alias, Bound, Static, Unbound
from .program.instances import NotSupplied, complete_statics
from .program.model_origins import ParameterOrigin
from .program.models import (
    ModelInstance,
    ModelSpec,
    Sites,
    memory_type,
    model_type,
    params_type,
    state_type,
)
from .program.program import ModelVar, SourceProgram
from .program.signature import Parameter, Signature
from .program.streams import stream_of
from .source.definition import (
    Definition,
    DefinitionKind,
    DerivedFunction,
    Implicit,
    InPlace,
    ModelUse,
    StaticValue,
)
from .source.flow import assigned_in, attributes_read, bound_by, locals_of, statements_in
from .source.optimizers import STAND_IN, OptimizerGuard, OptimizerUse
from .source.scope import CapturedName, Guard
from .types.annotation import AnnotationReader
from .types.derived_numbers import FunctionNumbers
from .types.number_places import filled


@final
@dataclass(frozen=True, slots=True)
class Translation:
    """A translated program.

    The parameters of `entry` in the module are the parts `params` and `state` of each model in
    `implicit`, in order, and then the values of `signature`. An entry that is a model has itself as
    the one implicit model. `exports` gives the model of each data type of exported values. The
    translation is right while all `guards` hold.

    `optimizers` has the optimisers that update explicit models, by parameter. The learning rates in
    `rates`, of optimisers by the parameter they are passed for, are part of the program.
    """

    module: Module
    entry: str
    signature: Signature
    implicit: tuple[ModelSpec, ...]
    exports: Mapping[str, ModelSpec]
    guards: tuple[Guard | OptimizerGuard, ...]
    optimizers: Mapping[str, OptimizerUse]
    rates: Mapping[str, float]
    data: Mapping[str, DataType]
    """The users' data types, by their names in the module."""
    numbers: FunctionNumbers
    """Where numbers are Python's own in the parameters and the result of the definition."""
    head: Span
    """Where the definition begins."""


def translate(
    entry: Definition | DerivedFunction,
    statics: Mapping[str, StaticValue | InPlace] | None = None,
    implicit: Sequence[ModelUse] = (),
    models: Sequence[ModelUse | None] = (),
    varying: Collection[CapturedName] = (),
    types: Mapping[str, Described] = MappingProxyType({}),
) -> Translation:
    """Return the program of a function for its static arguments and for the models it gets.

    Among the static arguments may be relay functions, for parameters that are functions, and the
    defaults of parameters that are left out. `implicit` has the instances of the model definitions
    that the program mentions (for an entry that is a model, its own), `models` the arguments for
    parameters that are models, in order. Without them the models are as their mentions and
    annotations say, in evaluation mode. The captured numbers at the places in `varying` are read by
    each run. `types` binds the type parameters of the entry, where the program is for these types
    alone. Raises CheckError with all mistakes that translation can find, as a `TranslationError`
    where there may be others.
    """
    definition = entry.definition if isinstance(entry, DerivedFunction) else entry
    plain: dict[str, StaticValue] = {}
    passed: dict[str, InPlace] = {}
    for parameter, value in (statics or {}).items():
        if isinstance(value, InPlace):
            passed[parameter] = value
        else:
            plain[parameter] = value
    given = _Given(definition, plain, implicit, models, varying, passed)
    program, instance, specs = _translated(given, is_debugged=is_debugging())
    if program.has_breakpoint and not program.is_debugged:
        program, instance, specs = _translated(given, is_debugged=True)
    name = program.function_name(instance)
    places = {n: ParameterOrigin(name, n) for n, _ in instance.models}
    program.updates.settle(places.values(), program.report)
    if program.problems:
        raise CheckError(*program.problems)
    found = {n: program.updates.optimizers([p])[0] for n, p in places.items()}
    functions = _typed(program, program.resolve_later(), specs)
    name, functions, signature = _put_around(program, entry, given, types, name, functions)
    inside = {n: numbers_in(t) for n, t in types.items()}
    numbers = FunctionNumbers(
        tuple(filled(p.numbers, inside) for p in signature.values),
        filled(signature.numbers, inside),
    )
    signature = derived_signature(entry, signature)
    leading = (instance,) if definition.kind is DefinitionKind.MODEL else instance.implicit
    return Translation(
        link(Module(functions, dict(program.adts))),
        name,
        signature,
        tuple(specs[i] for i in leading),
        {n: program.spec(i) for n, i in program.exports.items()},
        program.guards,
        {n: o for n, o in found.items() if o is not None},
        {o.source: o.lr for o in program.started if isinstance(o.source, str)},
        program.data.types,
        numbers,
        definition.source.head,
    )


def _put_around(
    program: SourceProgram,
    entry: Definition | DerivedFunction,
    given: _Given,
    types: Mapping[str, Described],
    name: str,
    functions: dict[str, Function],
) -> tuple[str, dict[str, Function], Signature]:
    """Return the name of the entry around a translated function, all functions, and its
    signature."""
    signature = program.signature(given.definition)
    known = entries.instantiation(program, given.definition, types)
    if given.functions:
        name, functions = entries.specialised(program, name, functions, signature, known)
        kept = (p for p in signature.parameters if p.name not in given.functions)
        made = (replace(p, ty=v.ty or UNKNOWN) for v, p in program.made.items())
        signature = replace(signature, parameters=(*kept, *made))
    if isinstance(entry, DerivedFunction):
        name, functions = entries.derived(program, entry, signature, name, functions, known)
    elif types and not given.functions:
        name, functions = entries.instantiated(program, name, functions, known)
    return name, functions, signature


@final
class TranslationError(CheckError):
    """Mistakes that translation found. `module` is the program with placeholders in their place,
    in which inference may find others."""

    def __init__(self, problems: Sequence[Diagnostic], module: Module) -> None:
        super().__init__(*problems)
        self.module: Final = module


@final
@dataclass(frozen=True, slots=True)
class _Given:
    """The arguments of `translate`."""

    definition: Definition
    statics: Mapping[str, StaticValue]
    implicit: Sequence[ModelUse]
    models: Sequence[ModelUse | None]
    varying: Collection[CapturedName]
    functions: Mapping[str, InPlace]
    """The relay functions that are passed, by parameter."""


def _translated(
    given: _Given, *, is_debugged: bool
) -> tuple[SourceProgram, ModelInstance, dict[ModelInstance, ModelSpec]]:
    """Translate everything. Raises CheckError."""
    program = SourceProgram(
        find_requirements, _translate_instance, given.varying, is_debugged=is_debugged
    )
    try:
        instance = _entry_instance(program, given)
        program.function_name(instance)
        _mention_passed(program, instance, given)
        program.translate_pending()
        specs = _specs(program)
    except CheckError as error:
        raise CheckError(*program.problems, *error.diagnostics) from None
    if program.problems:
        functions = {} if program.guesses else _typed(program, program.resolve_later(), specs)
        raise TranslationError(program.problems, link(Module(functions, dict(program.adts))))
    return program, instance, specs


def _specs(program: SourceProgram) -> dict[ModelInstance, ModelSpec]:
    """Return the trees of all models that the program holds, translating the models they need."""
    found: dict[ModelInstance, ModelSpec] = {}
    done = 0
    while done < len(program.model_vars):
        instance = program.model_vars[done].instance
        if instance not in found:
            found[instance] = program.spec(instance)
            program.translate_pending()
        done += 1
    return found


def _entry_instance(program: SourceProgram, given: _Given) -> ModelInstance:
    definition = given.definition
    signature = program.signature(definition)
    uses = {u.definition: u for u in given.implicit}
    span = definition.source.head
    found: list[ModelInstance] = []
    for model, mentioned in program.requirements(definition).items():
        use = uses.get(model, ModelUse(model, statics=tuple(mentioned.items())))
        completed = complete_statics(program, model, dict(use.statics), span)
        found.append(ModelInstance(model, completed, use.training, frozen=use.frozen))
    explicit: list[tuple[str, ModelInstance]] = []
    passed = list(given.models)
    for parameter in signature.values:
        if parameter.of is not None:
            use = passed.pop(0) if passed else None
            instance = _model_instance(program, parameter, use)
            if instance is not None:
                explicit.append((parameter.name, instance))
    own = uses.get(definition)
    statics = _stand_ins(signature) | dict(own.statics if own else ()) | dict(given.statics)
    return ModelInstance(
        definition,
        complete_statics(program, definition, statics, span),
        own is not None and own.training,
        tuple(explicit),
        tuple(found),
        own.frozen if own is not None else frozenset(),
    )


def _stand_ins(signature: Signature) -> dict[str, StaticValue]:
    """Return an optimiser for each parameter that is one: a program can be checked without."""
    names = [p.name for p in signature.statics if p.static is OptimizerUse and p.required]
    return {n: replace(STAND_IN, source=n) for n in names}


def _model_instance(
    program: SourceProgram, parameter: Parameter, use: ModelUse | None
) -> ModelInstance | None:
    """Return the model that a parameter holds: the one passed, or the one its annotation names."""
    named = annotated_definition(parameter.of)
    if use is None:
        if named is None:
            program.report(UnknownModel(parameter.span))
            return None
        use = ModelUse(named)
    statics = complete_statics(program, use.definition, dict(use.statics), parameter.span)
    return ModelInstance(use.definition, statics, use.training, frozen=use.frozen)


def _translate_instance(program: SourceProgram, instance: ModelInstance) -> None:
    """Translate one function into the program."""
    definition = instance.definition
    name = program.function_name(instance)
    signature = program.signature(definition)
    cx = _context(program, instance)
    params = (*_model_params(cx, name), *_value_params(cx, name, signature))
    try:
        shapes = _tied_records(cx)
        body = let(shapes, source_functions(cx, run(_body(cx))))
    except NotSupplied:
        program.report(UnknownModel(definition.source.head))
        return
    made = Function(
        params,
        body,
        signature.result,
        signature.type_params,
        definition.name,
        span=definition.source.head.using(cx.uses),
    )
    program.functions[name] = with_rules(cx, name, made)
    if cx.sites is not None:
        cx.sites.check(program.report)


def _body(cx: Context) -> Steps[Expr]:
    owner, node = cx.definition.owner, cx.definition.source.node
    if owner is None or not owner.takes_self:
        return function_body(cx, node)
    if owner.choices:
        return chosen_method(cx, owner)
    first = cx.program.signature(cx.definition).parameters[0].name
    return own_class(cx, owner, first, lambda: function_body(cx, node))


def _context(program: SourceProgram, instance: ModelInstance) -> Context:
    definition = instance.definition
    node, scope = definition.source.node, program.scope(definition)
    signature = program.signature(definition)
    reader = AnnotationReader(scope.namespace(), program.report, program.data)
    for parameter in signature.dims:
        reader.define(*parameter)
    cx = Context(program, instance, expression, function_body, scope, reader)
    counts: dict[str, int] = {}
    for each in assigned_in(node.body):
        counts[each] = counts.get(each, 0) + 1
    parameters = {p.name for p in signature.parameters}
    cx.once = frozenset(n for n, c in counts.items() if c == 1 and n not in parameters)
    cx.opened = attributes_read(node)
    cx.writes_items = writes_items(node.body)
    places = {n: cx.span(s) for s in reversed(list(statements_in(node.body))) for n in bound_by(s)}
    for local in sorted(locals_of(node)):
        place = places.get(local, definition.source.head)
        cx.env.set(local, Unbound(place, f"`{local}` gets its value here, which may be later"))
    cx.statics.update((n, v) for n, v in instance.statics if n not in counts)
    given = dict(instance.statics)
    for parameter in signature.statics:
        # One that is missing has been reported; any value stands for it.
        stand_in = STAND_IN if parameter.static is OptimizerUse else 0
        cx.env.set(parameter.name, Bound(static=Static(given.get(parameter.name, stand_in))))
        cx.assigned[parameter.name] = None
    cx.holding_data = data_names(cx, node.body, {p.name: p.ty for p in signature.values})
    cx.grown = grown_in(node, cx.holding_data)
    owner, args = definition.owner, node.args
    if owner is not None and owner.takes_class:
        first = (*args.posonlyargs, *args.args)[0].arg
        cx.env.set(first, Bound(static=Static(owner.cls)))
    return cx


def _model_params(cx: Context, name: str) -> list[Var]:
    """Return the parameters for the model itself, or for the implicit models."""
    instance, program = cx.instance, cx.program
    span = cx.definition.source.head
    if instance.definition.kind is DefinitionKind.MODEL:
        cx.sites = program.sites[instance] = Sites()
        cx.own = _parts(cx, name, instance, "")
        return [v for v in (cx.own.params, cx.own.state) if isinstance(v, Var)]
    found: list[Var] = []
    for model in instance.implicit:
        parts = _parts(cx, name, model, f"{model.definition.name}_")
        cx.implicit[model.definition] = parts
        found += [v for v in (parts.params, parts.state) if isinstance(v, Var)]
    assert all(v.span == span for v in found)
    return found


def _parts(cx: Context, name: str, instance: ModelInstance, prefix: str) -> ModelParts:
    span = cx.definition.source.head
    params, state = Var(f"{prefix}params", span=span), Var(f"{prefix}state", span=span)
    cx.program.model_vars.append(ModelVar(name, params, "params", instance))
    cx.program.model_vars.append(ModelVar(name, state, "state", instance))
    return ModelParts(params, state, instance)


def _value_params(cx: Context, name: str, signature: Signature) -> list[Var]:
    found: list[Var] = []
    passed = dict(cx.instance.models)
    for parameter in signature.values:
        if parameter.of is None:
            var = Var(parameter.name, parameter.ty, span=parameter.span)
            holder = Alias(parameter.span, "the caller has an alias of it")
            stream = None
            if parameter.element is not None:
                known = {d.name for d in signature.type_params}
                stream = stream_of(cx.program, parameter.element, known, parameter.span)
            atom = placeholder(parameter.span) if parameter.is_refused else var
            entry = Bound(atom=atom, holder=holder, stream=stream)
            if parameter.implicit is not None:
                _bind_implicit(cx, parameter.implicit, entry)
                found.append(var)
                continue
            cx.env.set(parameter.name, entry)
            cx.assigned[parameter.name] = None
        else:
            var = Var(parameter.name, span=parameter.span)
            known = passed.get(parameter.name)
            instance = known or _model_instance(cx.program, parameter, None)
            if instance is not None and parameter.params is not None:
                cx.program.model_vars.append(ModelVar(name, var, "params", instance))
                cx.env.set(parameter.name, Bound(atom=var, record=instance))
            elif instance is not None:
                place = ParameterOrigin(name, parameter.name)
                part = "models" if parameter.is_list else "model"
                cx.program.model_vars.append(ModelVar(name, var, part, instance, place))
                entry = Bound(model=instance, places=(place,))
                entry = Bound(items=entry) if parameter.is_list else entry
                cx.env.set(parameter.name, replace(entry, atom=var))
        found.append(var)
    return found


def _bind_implicit(cx: Context, implicit: Implicit, entry: Bound) -> None:
    """Let the names by which a function mentions an implicit value stand for its parameter."""
    assert entry.atom is not None
    cx.supplied[implicit] = entry.atom
    locals_ = cx.definition.local_names
    for node in ast.walk(cx.definition.source.node):
        if isinstance(node, ast.Name) and cx.scope.value(node, locals_) is implicit:
            cx.env.set(node.id, entry)


def _tied_records(cx: Context) -> list[Binding]:
    """Return bindings that give the parameters in records the shapes that their model needs."""
    entries = (cx.env.find(p.name) for p in cx.program.signature(cx.definition).values if p.params)
    return [
        Binding(Var("shapes", span=e.atom.span), tied(cx, e.record, e.atom))
        for e in entries
        if isinstance(e, Bound) and e.record is not None and isinstance(e.atom, Var)
    ]


def _typed(
    program: SourceProgram,
    functions: Mapping[str, Function],
    specs: Mapping[ModelInstance, ModelSpec],
) -> dict[str, Function]:
    """Return the functions with the types of all parameters that hold models filled in."""
    changed: dict[str, dict[Var, Var]] = {}
    for each in program.model_vars:
        var = replace(each.var, ty=_type_of(program, each, specs[each.instance]))
        changed.setdefault(each.function, {})[each.var] = var
    return {n: replace_params(f, changed.get(n, {})) for n, f in functions.items()}


def _type_of(program: SourceProgram, variable: ModelVar, spec: ModelSpec) -> Type:
    match variable.part:
        case "params":
            return params_type(spec)
        case "state":
            return state_type(spec)
        case "model" | "models" as part:
            assert variable.place is not None
            # A function that is passed models with several optimisers uses no memory.
            rules = {o.rule if o else None for o in program.updates.optimizers([variable.place])}
            ty = model_type(spec, memory_type(spec, *rules) if len(rules) == 1 else UNKNOWN)
            return AdtType(LIST, (ty,)) if part == "models" else ty


def _mention_passed(program: SourceProgram, instance: ModelInstance, given: _Given) -> None:
    """Translate the relay functions that are passed to the entry, and the defaults in the place of
    its parameters."""
    cx = _context(program, instance) if given.functions else None
    parameters = {p.name: p for p in program.signature(given.definition).values}
    for name, function in given.functions.items():
        assert cx is not None
        try:
            program.passed[name] = entries.in_place(cx, function, parameters[name])
        except NotSupplied:
            program.report(UnknownModel(parameters[name].span))
