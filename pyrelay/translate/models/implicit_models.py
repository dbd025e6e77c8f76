"""Which models a function mentions, itself or through the functions that it calls.

These become its implicit parameters, so every caller must know them before it is translated. They
are found from names alone: the mentions of each function, and then a fixed point over the calls.
A model that `relay.grad(model, f, args)` supplies is no requirement of the function around.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from ...ir.intrinsics import Intrinsic
from ..context import Program
from ..data.families import methods_named
from ..names.flow import all_statements, locals_of
from ..names.scope import Scope, is_plain
from ..source.definition import Definition, DerivedFunction, Kind, StaticValue, meaning
from ..source.signature import Parameter

Supplied: TypeAlias = frozenset[Definition] | None
"""The models supplied where something stands; None for one that only its caller knows, which is
taken to be all that is needed."""

NOTHING: Final[Supplied] = frozenset()
SUPPLIED: Final = (Intrinsic.GRAD, Intrinsic.VALUE_AND_GRAD, Intrinsic.VJP)
"""The transforms that take models in front, `relay.grad(model, f, args)`."""


@final
@dataclass(frozen=True, slots=True)
class _Mention:
    """A mention of a relay function or model, and the models supplied where it stands."""

    target: Definition
    supplied: Supplied
    statics: tuple[tuple[str, StaticValue], ...]


def find_requirements(
    program: Program, definition: Definition
) -> Mapping[Definition, Mapping[str, StaticValue]]:
    """Return the models that a function mentions, in order, with the static arguments there."""
    mentions = _mentions_from(program, definition)
    found: dict[Definition, dict[Definition, dict[str, StaticValue]]] = {d: {} for d in mentions}
    changed = True
    while changed:
        before = sum(map(len, found.values()))
        for current, inside in mentions.items():
            for mention in inside:
                for model, statics in _needs(mention, found):
                    found[current].setdefault(model, statics)
        changed = sum(map(len, found.values())) != before
    return found[definition]


def _mentions_from(program: Program, definition: Definition) -> dict[Definition, list[_Mention]]:
    """Return what a function mentions, and what the functions mention that it reaches."""
    mentions: dict[Definition, list[_Mention]] = {}
    pending = [definition]
    while pending:
        current = pending.pop()
        if current in mentions or current.kind is Kind.MODEL:
            continue
        mentions[current] = list(_Mentions(program, current).find())
        pending += (m.target for m in reversed(mentions[current]))
    return mentions


def _needs(
    mention: _Mention, found: Mapping[Definition, Mapping[Definition, dict[str, StaticValue]]]
) -> Iterable[tuple[Definition, dict[str, StaticValue]]]:
    """Return the models that a mention needs and that are not supplied where it stands."""
    if mention.supplied is None:
        return []
    needed = [(mention.target, dict(mention.statics))]
    if mention.target.kind is not Kind.MODEL:
        needed = list(found[mention.target].items())
    return [(model, statics) for model, statics in needed if model not in mention.supplied]


def _both(left: Supplied, right: Supplied) -> Supplied:
    return None if left is None or right is None else left | right


@final
class _Mentions:
    """Finds the mentions in one function."""

    def __init__(self, program: Program, definition: Definition) -> None:
        self._program: Final = program
        self._choices: Final = () if definition.owner is None else definition.owner.choices
        self._scope: Final[Scope] = program.scope(definition)
        self._namespace: Final = program.namespace(definition)
        self._node: Final = definition.source.node
        self._locals: Final = locals_of(self._node)
        self._nested: Final = {
            n.name: n for n in all_statements(self._node.body) if isinstance(n, ast.FunctionDef)
        }
        self._models: Final = self._local_models(program.signature(definition).parameters)
        self._seen: Final[set[tuple[str, Supplied]]] = set()

    def find(self) -> Iterator[_Mention]:
        """Return the mentions in the order of the text; nested functions where they are named."""
        if self._choices:
            yield from (_Mention(d, NOTHING, ()) for _, d in self._choices if d is not None)
            return
        pending: list[tuple[ast.AST, Supplied]] = [(s, NOTHING) for s in self._node.body[::-1]]
        while pending:
            node, supplied = pending.pop()
            parts = list(self._parts(node, supplied))
            pending += reversed(parts)
            target = self._target(node)
            if target is not None:
                yield _Mention(target, supplied, self._statics(node, target))
            if isinstance(node, ast.Attribute) and target is None:
                methods = methods_named(self._program, node.attr, self._namespace)
                yield from (_Mention(m, supplied, ()) for m in methods)

    def _parts(self, node: ast.AST, supplied: Supplied) -> Iterator[tuple[ast.AST, Supplied]]:
        match node:
            case ast.FunctionDef():
                return  # walked where it is mentioned
            case ast.Name(id=name) if name in self._nested and (name, supplied) not in self._seen:
                self._seen.add((name, supplied))
                yield from ((s, supplied) for s in self._nested[name].body)
            case ast.AnnAssign(value=value) if value is not None:
                yield value, supplied
            case ast.Call():
                yield from self._call_parts(node, supplied)
            case ast.Attribute() | ast.Subscript() if self._target(node) is not None:
                return
            case _:
                yield from ((child, supplied) for child in ast.iter_child_nodes(node))

    def _call_parts(self, node: ast.Call, supplied: Supplied) -> Iterator[tuple[ast.AST, Supplied]]:
        arguments = [*node.args, *(k.value for k in node.keywords)]
        intrinsic = meaning(self._scope.value(node.func, self._locals))
        if intrinsic is Intrinsic.CREATE_MODEL:
            arguments = arguments[1:]
        elif intrinsic is Intrinsic.WITH_PARAMS:
            yield from ((a, None) for a in arguments)
            arguments = []
        elif intrinsic in SUPPLIED and len(node.args) > 1:
            models = self._supplied(node.args[0])
            if models != NOTHING:
                yield node.args[1], _both(supplied, models)
                arguments = [node.args[0], *arguments[2:]]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "bind":
            models = self._supplied(node.func.value)
            yield from ((a, _both(supplied, models)) for a in arguments)
            arguments = []
        if not (intrinsic is None and self._target(node.func) is not None):
            yield node.func, supplied
        yield from ((a, supplied) for a in arguments)

    def _target(self, node: ast.AST) -> Definition | None:
        """Return the definition that a name, or the callee of a call, is."""
        if isinstance(node, ast.Call):
            node = node.func
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return None
        found = meaning(self._scope.value(node, self._locals))
        if isinstance(found, DerivedFunction):
            return found.definition
        return found if isinstance(found, Definition) else None

    def _statics(self, node: ast.AST, target: Definition) -> tuple[tuple[str, StaticValue], ...]:
        if not isinstance(node, ast.Call) or target.kind is not Kind.MODEL:
            return ()
        kwonly = {a.arg for a in target.source.node.args.kwonlyargs}
        given = {k.arg: k.value for k in node.keywords if k.arg in kwonly}
        values = {n: self._scope.value(v, self._locals) for n, v in given.items()}
        return tuple((str(n), v) for n, v in values.items() if is_plain(v))

    def _supplied(self, node: ast.expr) -> Supplied:
        """Return the models that an argument of a transform names; none if it is a function."""
        names = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        known = [n.id for n in names if isinstance(n, ast.Name) and n.id in self._models]
        found = [self._models[n] for n in known]
        if any(m is None for m in found):
            return None
        return frozenset(m for m in found if m is not None)

    def _local_models(self, parameters: Iterable[Parameter]) -> dict[str, Definition | None]:
        """Return the local names that hold models: annotated parameters, and models created here;
        None for a bare `Model`."""
        found: dict[str, Definition | None] = {}
        for parameter in parameters:
            if parameter.model is not None:
                definition = meaning(parameter.model.definition)
                found[parameter.name] = definition if isinstance(definition, Definition) else None
        for node in all_statements(self._node.body):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    definition = self._created(call)
                    if definition is not None:
                        found[name] = definition
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)):
                    if other in found:
                        found[name] = found[other]
                case _:
                    pass
        return found

    def _created(self, call: ast.Call) -> Definition | None:
        """Return the definition of the model that a call of `create_model` makes."""
        function = self._scope.value(call.func, self._locals)
        if not call.args or meaning(function) is not Intrinsic.CREATE_MODEL:
            return None
        definition = meaning(self._scope.value(call.args[0], self._locals))
        return definition if isinstance(definition, Definition) else None
