"""Calls of methods, and reads of properties, of frozen dataclasses.

Which class a method belongs to is decided by what is known of the value: the class that a test has
narrowed it to, else the union it is annotated with, else the one union in sight that has a method
of that name. Where several have one, or tensors and lists do, inference decides by the type.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.data import NoSuchMethod
from ...diagnostics.misspelt import did_you_mean, nearest
from ...diagnostics.source import NOWHERE, Span
from ...ir.constant import is_placeholder, placeholder
from ...ir.expr import (
    Binding,
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Match,
    Tuple,
    Var,
)
from ...ir.fields import reading
from ...ir.traverse import Steps, let
from ...ir.types import AdtType, Type, show
from ...operators.host.loop import by_type
from ..blocks.conditions import excluded_before
from ..calls.construction import construct_call
from ..calls.functions import definition_call
from ..data.data_class import place_of
from ..data.methods import CALLED, READ, Method, MethodKind, kind_of
from ..names.atoms import atom, into
from ..names.hidden import hidden_name
from ..names.narrowing import classes_left, entry_of, fields_bound, note_class, of_class
from ..names.static import static_value
from ..program.context import Context, in_turn
from ..program.environment import Bound
from ..program.families import Family, families, is_translatable
from ..source.definition import Definition, Owner
from ..source.scope import is_frozen

Otherwise: TypeAlias = Callable[[ast.expr], Steps[Expr]]
"""Translates the same syntax of a value that has no such method; the argument is its receiver."""


Plain: TypeAlias = Callable[..., Steps[Expr]]
"""Translates an operator of values that are no instances of a user's class."""


def method_use(
    cx: Context, node: ast.Call | ast.Attribute, otherwise: Otherwise | None
) -> Steps[Expr | None]:
    """Translate a call of a method or a read of a property; None where the value has none.

    `otherwise` translates what the syntax means of other values, if it means anything.
    """
    use = _Use.of(cx, node)
    found = families(cx.program, use.name, cx.annotations.namespace, use.kinds)
    if not found and isinstance(node, ast.Attribute) and otherwise is None:
        return (yield _bound_method(use))
    entry = entry_of(cx, use.value)
    if not found or (entry is not None and (entry.record or entry.model or entry.stream)):
        return None
    left = _classes_known(cx, use.value)
    if left:
        family = next((f for f in found if left[0] in f.members), None)
        if family is None or (len(left) == 1 and use.name in _fields(left[0])):
            return None
    value = yield cx.expression(use.value)
    if is_placeholder(value):
        return value
    bindings: list[Binding] = []
    use = use.on(atom(value, "self", into(bindings)))
    if left:
        family = next(f for f in found if left[0] in f.members)
        return let(bindings, (yield _on_classes(use, family, left)))
    ty = _type_of(cx, value)
    if ty is not None:
        found = [f for f in found if isinstance(ty, AdtType) and _names(cx, f) == ty.name]
        if not found:
            return None if otherwise is None else let(bindings, (yield otherwise(use.value)))
    if len(found) == 1 and (otherwise is None or ty is not None):
        return let(bindings, (yield _on_classes(use, found[0], found[0].members)))
    return let(bindings, (yield _by_type(use, found, otherwise, bindings)))


def special_use(
    cx: Context,
    node: ast.expr,
    name: str,
    written: Sequence[ast.expr],
    plain: Plain,
    *,
    place: int = 0,
) -> Steps[Expr]:
    """Translate an operator of Python as the method `name` of the operand at a place where that is
    an instance of a class which has one, else as `plain` does."""
    found = families(cx.program, name, cx.annotations.namespace, CALLED) if name else ()
    if not found or static_value(cx, written[place]) is not None:
        return (yield plain(*written))
    bindings: list[Binding] = []
    operands: list[ast.expr] = []
    for operand in written:
        if _is_fixed(cx, operand):
            operands.append(operand)
        else:
            value = yield cx.expression(operand)
            operands.append(_named(cx, operand, atom(value, "operand", into(bindings))))
    before, after = operands[:place], operands[place + 1 :]
    method = ast.copy_location(ast.Attribute(operands[place], name, ast.Load()), node)
    call = ast.copy_location(ast.Call(method, [*before, *after], []), node)
    used = yield method_use(cx, call, lambda receiver: plain(*before, receiver, *after))
    return let(bindings, (yield plain(*operands)) if used is None else used)


def _bound_method(use: _Use) -> Steps[Expr | None]:
    """Translate a method that is mentioned, `shape.area`, as a function of its own arguments; None
    where no class in sight has one."""
    cx, node = use.cx, use.attribute
    found = families(cx.program, use.name, cx.annotations.namespace, CALLED)
    if not found:
        return None
    value = yield cx.expression(use.value)
    bindings: list[Binding] = []
    receiver = use.on(atom(value, "self", into(bindings))).attribute
    method = next(iter(found[0].methods.values()))
    first = int(method.kind is MethodKind.METHOD)
    parameters = cx.program.signature(method.definition).parameters[first:]
    names = [p.name for p in parameters if p.required]
    args = [ast.copy_location(ast.Name(n, ast.Load()), node) for n in names]
    params = [ast.copy_location(ast.arg(n), node) for n in names]
    call = ast.copy_location(ast.Call(receiver, [*args], []), node)
    whole = ast.arguments([], params, None, [], [], None, [])
    function = yield cx.expression(ast.copy_location(ast.Lambda(whole, call), node))
    return let(bindings, function)


@final
@dataclass(frozen=True, slots=True)
class _Use:
    """A call of a method, or a read of a property."""

    cx: Context
    call: ast.Call
    """The call; of a property one without arguments."""
    attribute: ast.Attribute
    kinds: frozenset[MethodKind]

    @staticmethod
    def of(cx: Context, node: ast.Call | ast.Attribute) -> _Use:
        if isinstance(node, ast.Attribute):
            return _Use(cx, ast.copy_location(ast.Call(node, [], []), node), node, READ)
        assert isinstance(node.func, ast.Attribute)
        return _Use(cx, node, node.func, CALLED)

    @property
    def name(self) -> str:
        return self.attribute.attr

    @property
    def value(self) -> ast.expr:
        """The receiver."""
        return self.attribute.value

    @property
    def span(self) -> Span:
        return self.cx.span(self.call)

    def on(self, receiver: Expr) -> _Use:
        """Return the same use of a value that is translated already."""
        name = _named(self.cx, self.value, receiver)
        attribute = ast.copy_location(ast.Attribute(name, self.name, ast.Load()), self.attribute)
        call = ast.copy_location(ast.Call(attribute, self.call.args, self.call.keywords), self.call)
        return replace(self, call=call, attribute=attribute)

    def with_args(self, bind: Callable[[Var, Expr], object]) -> Steps[_Use]:
        """Return the same use, its arguments evaluated once, in front."""
        args = yield in_turn(self._once(a, bind) for a in self.call.args)
        values = yield in_turn(self._once(k.value, bind) for k in self.call.keywords)
        keywords = [
            ast.copy_location(ast.keyword(k.arg, v), k)
            for k, v in zip(self.call.keywords, values, strict=True)
        ]
        call = ast.copy_location(ast.Call(self.attribute, args, keywords), self.call)
        return replace(self, call=call)

    def _once(self, arg: ast.expr, bind: Callable[[Var, Expr], object]) -> Steps[ast.expr]:
        if _is_fixed(self.cx, arg):
            return arg
        value = yield self.cx.expression(arg)
        return _named(self.cx, arg, atom(value, "argument", bind))


def _named(cx: Context, node: ast.expr, value: Expr) -> ast.Name:
    """Return a name that stands for a value which is translated already. Facts about the value
    stay, and a name of the text stays that name."""
    known = entry_of(cx, node)
    entry = Bound(atom=value) if known is None else replace(known, atom=value)
    if not isinstance(node, ast.Name) or node.id in cx.grown or not known or not known.atom:
        return hidden_name(cx, node, entry)
    cx.env.set(node.id, entry)
    return node


def _is_fixed(cx: Context, node: ast.expr) -> bool:
    """Return whether an argument may be translated several times: evaluating it has no effect and
    takes no time."""
    return isinstance(node, ast.Name | ast.Lambda) or static_value(cx, node) is not None


def _classes_known(cx: Context, node: ast.expr) -> tuple[type, ...]:
    """Return the classes that a value may be of, where tests exclude others or the value is
    captured; none where neither is so."""
    known = static_value(cx, node)
    if known is not None:
        return (type(known.value),) if is_frozen(known.value) else ()
    entry = entry_of(cx, node)
    if entry is not None and entry.constructor is not None:
        return (entry.constructor.cls,)
    return tuple(c.cls for c in classes_left(cx, node))


def _type_of(cx: Context, value: Expr) -> Type | None:
    """Return the type of a value as far as annotations show it; the arguments of a data type may be
    missing."""
    match value:
        case Var(ty=ty):
            return ty
        case Call(callee=Constructor(adt)):
            return AdtType(adt, ())
        case Call(callee=GlobalVar(name)):
            return cx.program.result_of(name)
        case _:
            return None


def _names(cx: Context, family: Family) -> str | None:
    """Return the name of a family's data type in the module, if the program has it by now."""
    known = cx.program.data.types.values()
    return next((t.name for t in known if t.union.key == family.union.key), None)


def _fields(cls: type) -> Mapping[str, object]:
    return cls.__dataclass_fields__


def _on_classes(use: _Use, family: Family, classes: Sequence[type]) -> Steps[Expr]:
    """Translate the use of a value that is of one of some classes of a union."""
    cx = use.cx
    is_read = use.kinds is READ
    for cls in classes:
        if cls not in family.methods and not (is_read and use.name in _fields(cls)):
            return cx.refuse(_lacking(use, family, cls))
    methods = [(c, family.methods.get(c)) for c in classes]
    for method in filter(None, family.methods.values()):
        cx.scope.attribute(method.home, use.name)  # guarded
    if len(classes) == 1:
        return (yield _on_class(use, family.methods[classes[0]].definition))
    if _are_alike(cx, methods):
        chosen = cx.program.choice(family.union, use.name, methods)
        return (yield _on_class(use, chosen))
    bindings: list[Binding] = []
    use = yield use.with_args(into(bindings))
    definitions = [(c, None if m is None else m.definition) for c, m in methods]
    return let(bindings, (yield _match(use, definitions)))


def _are_alike(cx: Context, methods: Sequence[tuple[type, Method | None]]) -> bool:
    """Return whether methods of several classes take the same arguments, so that one function may
    choose among them."""
    known = [m for _, m in methods if m is not None]
    signatures = [cx.program.signature(m.definition) for m in known]
    taken = [[replace(p, span=NOWHERE) for p in s.parameters] for s in signatures]
    same = all(parameters == taken[0] for parameters in taken)
    return same and all(m.kind in _OF_INSTANCES for m in known)


_OF_INSTANCES: Final = (MethodKind.METHOD, MethodKind.PROPERTY)


def _match(use: _Use, methods: Sequence[tuple[type, Definition | None]]) -> Steps[Expr]:
    """Translate the use of a value as a match of its classes."""
    cx = use.cx
    found = [cx.constructor(c, use.span) for c, _ in methods]
    constructors = [c for c in found if c is not None]
    if len(constructors) < len(methods):
        return placeholder(use.span)
    clauses: list[Clause] = []
    for constructor, (_, definition) in zip(constructors, methods, strict=True):
        if definition is None:
            whole = cx.program.data.adts[constructor.adt].constructor(constructor.name)
            clauses.append(reading(constructor.adt, whole, use.name, use.span))
        else:
            body = yield _on_class(use, definition)
            clauses.append(Clause(of_class(constructor, use.span), body))
    value = yield cx.expression(use.value)
    clauses += excluded_before(cx, constructors, use.span)
    return Match(value, tuple(clauses), span=use.span)


def _on_class(use: _Use, definition: Definition) -> Steps[Expr]:
    receiver = use.value if definition.owner is not None and definition.owner.takes_self else None
    return definition_call(use.cx, use.call, definition, None, receiver)


def _lacking(use: _Use, family: Family, cls: type) -> NoSuchMethod:
    union, holder = family.union.name, next(iter(family.methods)).__name__
    instead = (
        f"define it in each class of `{union}`, or test the class first: `isinstance(x, {holder})`"
    )
    place, kind = place_of(cls, use.span), "property" if use.kinds is READ else "method"
    owner = f"`{cls.__name__}`"
    return NoSuchMethod(use.span, use.name, owner, union, instead, place, kind)


def no_method(cx: Context, node: ast.Attribute, ty: AdtType) -> NoSuchMethod:
    """Return the mistake of a method that a value of a user's data type does not have."""
    name, span = node.attr, cx.span(node)
    classes = [c.cls for c in cx.program.data.types[ty.name].constructors]
    known = {n for c in classes for n in dir(c) if kind_of(c, n) in CALLED}
    instead = did_you_mean(nearest(name, sorted(known)))
    if any(kind_of(c, name) in READ for c in classes):
        instead = f"it is a property: write `{ast.unparse(node)}`"
    elif any(hasattr(c, name) for c in classes):
        instead = "a method is a plain `def` in the class: leave its other decorators out"
    return NoSuchMethod(span, name, show(ty), show(ty), instead)


def _by_type(
    use: _Use, found: Sequence[Family], otherwise: Otherwise | None, bindings: list[Binding]
) -> Steps[Expr]:
    """Translate the use of a value whose type inference finds. What the arguments do not fit is
    not chosen."""
    cx, known = use.cx, [f for f in found if is_translatable(f)] or list(found)
    value = yield cx.expression(use.value)
    use = yield use.with_args(into(bindings))
    alternatives: list[Function] = []
    types: list[str] = []
    count = len(cx.program.problems)
    for family in known:
        constructor = cx.constructor(family.members[0], use.span)
        function = yield _alternative(use, family)
        if constructor is not None and not cx.program.forget(count):
            types.append(constructor.adt)
            alternatives.append(function)
    if otherwise is not None:
        function = yield _alternative(use, otherwise)
        alternatives += [] if cx.program.forget(count) else [function]
    if not alternatives:  # what is wrong is reported after all
        return (yield _on_classes(use, known[0], known[0].members))
    attrs = {"name": use.name, "types": tuple(types)}
    choice = Tuple(tuple(alternatives), span=use.span)
    return Call(by_type, (choice, value), attrs, span=use.span)


def _alternative(use: _Use, member: Family | Otherwise) -> Steps[Function]:
    """Return the use of the values of one type, as a function."""
    var, mark = Var("self", span=use.span), use.cx.env.mark()
    inner = use.on(var)
    if isinstance(member, Family):
        body = yield _on_classes(inner, member, member.members)
    else:
        body = yield member(inner.value)
    use.cx.env.undo(mark)
    return Function((var,), body, span=use.span)


def chosen_method(cx: Context, owner: Owner) -> Steps[Expr]:
    """Translate a function that calls the method of an instance's class."""
    node = cx.definition.source.node
    first, *others = cx.program.declared(cx.definition).parameters
    names = {p.name: ast.copy_location(ast.Name(p.name, ast.Load()), node) for p in others}
    self = ast.copy_location(ast.Name(first.name, ast.Load()), node)
    callee = ast.copy_location(ast.Attribute(self, node.name, ast.Load()), node)
    args: list[ast.expr] = [names[p.name] for p in others if not p.keyword_only]
    keywords = [ast.keyword(p.name, names[p.name]) for p in others if p.keyword_only]
    call = ast.copy_location(ast.Call(callee, args, keywords), node)
    return (yield _match(_Use.of(cx, call), owner.choices))


def own_class(
    cx: Context, owner: Owner, parameter: str, walk: Callable[[], Steps[Expr]]
) -> Steps[Expr]:
    """Translate the body of a method, in which the class of `self` is known."""
    name = ast.copy_location(ast.Name(parameter, ast.Load()), cx.definition.source.node)
    return (yield _as_class(cx, name, owner.cls, walk, cx.definition.source.head))


def _as_class(
    cx: Context, name: ast.Name, cls: type, walk: Callable[[], Steps[Expr]], span: Span
) -> Steps[Expr]:
    """Translate an expression in which the class of a name is known."""
    found = cx.constructor(cls, span)
    value = yield cx.expression(name)
    if found is None:
        return value
    fields = fields_bound(found, span)
    note_class(cx, name, found, fields)
    clause = Clause(of_class(found, span, fields), (yield walk()))
    return Match(value, (clause, *excluded_before(cx, [found], span)), span=span)


def replace_call(cx: Context, node: ast.Call) -> Steps[Expr | None]:
    """Translate `dataclasses.replace(p, x=...)`; None where the class of `p` is not seen: it is
    known, or the one class in sight that has the fields."""
    if len(node.args) != 1 or any(k.arg is None for k in node.keywords):
        return None
    changed = {k.arg: k.value for k in node.keywords if k.arg is not None}
    in_sight = cx.program.data_classes(cx.annotations.namespace)
    having = [c for c in in_sight if changed.keys() <= _fields(c).keys()]
    classes = _classes_known(cx, node.args[0]) or having
    if len(classes) != 1:
        return None
    (cls,) = classes
    bindings: list[Binding] = []
    value = atom((yield cx.expression(node.args[0])), "instance", into(bindings))
    name, mark = _named(cx, node.args[0], value), cx.env.mark()
    kept = {n: ast.Attribute(name, n, ast.Load()) for n in _fields(cls) if n not in changed}
    values = {**changed, **{n: ast.copy_location(v, node) for n, v in kept.items()}}
    keywords = [ast.copy_location(ast.keyword(n, v), node) for n, v in values.items()]
    call = ast.copy_location(ast.Call(node.func, [], keywords), node)
    made = yield _as_class(cx, name, cls, lambda: construct_call(cx, call, cls), cx.span(node))
    cx.env.undo(mark)
    return let(bindings, made)
