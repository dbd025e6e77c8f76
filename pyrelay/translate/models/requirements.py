"""The requirements of a function on its callers (its coeffects): the models and the implicit values
that it mentions, itself or through the functions that it calls.

These become parameters, so every caller must know them before it is translated. They are found from
names alone: the mentions of each function, and then a fixed point over the calls. A model that
`relay.grad(model, f, args)` supplies, or an implicit value that a call gives by name, is no
requirement of the function around. The models that a model definition mentions are parts of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.intrinsics import Intrinsic
from ..program.families import methods_named
from ..program.program import SourceProgram
from ..program.signature import Parameter
from ..source.definition import (
    Definition,
    DefinitionKind,
    DerivedFunction,
    Implicit,
    StaticValue,
    meaning,
)
from ..source.flow import all_statements, locals_of
from ..source.scope import Scope, is_plain
from ..source.syntax import arguments_of, elements_of

Supplied: TypeAlias = frozenset[Definition] | None
"""The models supplied where something stands; None for one that only its caller knows, which is
taken to be all that is needed."""

NOTHING: Final[Supplied] = frozenset()
SUPPLIED: Final = (
    Intrinsic.GRAD,
    Intrinsic.VALUE_AND_GRAD,
    Intrinsic.VJP,
    Intrinsic.JVP,
    Intrinsic.HVP,
)
"""The transforms that take models in front, `relay.grad(model, f, args)`."""


@final
@dataclass(frozen=True, slots=True)
class _Mention:
    """A mention of a relay function or model, and the models supplied where it stands."""

    target: Definition | Implicit
    supplied: Supplied = NOTHING
    statics: tuple[tuple[str, StaticValue], ...] = ()
    named: frozenset[str] = frozenset()
    """The implicit values that a call gives."""
    is_instance: bool = False
    """Whether it is an instance of a model, at hand by another name."""


_Needs: TypeAlias = dict[Definition | Implicit, dict[str, StaticValue]]


def find_requirements(
    program: SourceProgram, definition: Definition
) -> Mapping[Definition, _Needs]:
    """Return the requirements of a function, and of all that it reaches: the models, in order, with
    the static arguments of the first mention, and the implicit values."""
    mentions = _mentions_from(program, definition)
    found: dict[Definition, _Needs] = {d: {} for d in mentions}
    changed = True
    while changed:
        before = sum(map(len, found.values()))
        for current, inside in mentions.items():
            for mention in inside:
                for needed, statics in _needs(mention, found):
                    if current.kind is DefinitionKind.FUNCTION or isinstance(needed, Implicit):
                        found[current].setdefault(needed, statics)
        changed = sum(map(len, found.values())) != before
    return found


def _mentions_from(
    program: SourceProgram, definition: Definition
) -> dict[Definition, list[_Mention]]:
    """Return the mentions of a function and of the functions that it reaches."""
    mentions: dict[Definition, list[_Mention]] = {}
    pending = [definition]
    while pending:
        current = pending.pop()
        if current in mentions:
            continue
        mentions[current] = list(_Mentions(program, current).find())
        targets = (m.target for m in reversed(mentions[current]))
        pending += (t for t in targets if isinstance(t, Definition))
    return mentions


def _needs(
    mention: _Mention, found: Mapping[Definition, _Needs]
) -> Iterable[tuple[Definition | Implicit, dict[str, StaticValue]]]:
    """Return the needs of a mention that are not supplied where it stands."""
    target = mention.target
    if isinstance(target, Implicit):
        return [(target, {})]
    needed = list(found[target].items())
    if target.kind is DefinitionKind.MODEL and not mention.is_instance:
        needed.append((target, dict(mention.statics)))
    return [(n, statics) for n, statics in needed if not _is_supplied(mention, n)]


def _is_supplied(mention: _Mention, needed: Definition | Implicit) -> bool:
    if isinstance(needed, Implicit):
        return needed.name in mention.named
    return mention.supplied is None or needed in mention.supplied


def _both(left: Supplied, right: Supplied) -> Supplied:
    return None if left is None or right is None else left | right


@final
class _Mentions:
    """Finds the mentions in one function."""

    def __init__(self, program: SourceProgram, definition: Definition) -> None:
        self._program: Final = program
        self._choices: Final = () if definition.owner is None else definition.owner.choices
        self._scope: Final[Scope] = program.scope(definition)
        self._namespace: Final = program.namespace(definition)
        self._node: Final = definition.source.node
        self._locals: Final = locals_of(self._node)
        self._nested: Final = {
            n.name: n for n in all_statements(self._node.body) if isinstance(n, ast.FunctionDef)
        }
        self._models: Final = self._local_models(program.declared(definition).parameters)
        self._seen: Final[set[tuple[str, Supplied]]] = set()

    def find(self) -> Iterator[_Mention]:
        """Return the mentions in the order of the text; nested functions where they are named."""
        if self._choices:
            yield from (_Mention(d) for _, d in self._choices if d is not None)
            return
        pending: list[tuple[ast.AST, Supplied]] = [(s, NOTHING) for s in self._node.body[::-1]]
        while pending:
            node, supplied = pending.pop()
            parts = list(self._parts(node, supplied))
            pending += reversed(parts)
            target = self._target(node)
            if isinstance(target, Implicit):
                yield _Mention(target)
            elif target is not None:
                named = self._named(node)
                yield _Mention(target, supplied, self._statics(node, target), named)
            elif isinstance(node, ast.Name) and self._models.get(node.id) is not None:
                model = self._models[node.id]
                assert model is not None
                yield _Mention(model, is_instance=True)
            if isinstance(node, ast.Attribute) and target is None:
                methods = methods_named(self._program, node.attr, self._namespace)
                yield from (_Mention(m, supplied) for m in methods)

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
        arguments = arguments_of(node)
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
        if not isinstance(self._target(node.func), Definition):  # else the call is the mention
            yield node.func, supplied
        yield from ((a, supplied) for a in arguments)

    def _target(self, node: ast.AST) -> Definition | Implicit | None:
        """Return the definition that a name, or the callee of a call, is, or the implicit value."""
        if isinstance(node, ast.Call):
            node = node.func
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return None
        found = meaning(self._scope.value(node, self._locals))
        if isinstance(found, DerivedFunction):
            return found.definition
        return found if isinstance(found, Definition | Implicit) else None

    def _named(self, node: ast.AST) -> frozenset[str]:
        """Return the keywords of a call: among them may be implicit values."""
        keywords = node.keywords if isinstance(node, ast.Call) else ()
        return frozenset(k.arg for k in keywords if k.arg is not None)

    def _statics(self, node: ast.AST, target: Definition) -> tuple[tuple[str, StaticValue], ...]:
        if not isinstance(node, ast.Call) or target.kind is not DefinitionKind.MODEL:
            return ()
        kwonly = {a.arg for a in target.source.node.args.kwonlyargs}
        given = {k.arg: k.value for k in node.keywords if k.arg in kwonly}
        values = {n: self._scope.value(v, self._locals) for n, v in given.items()}
        return tuple((str(n), v) for n, v in values.items() if is_plain(v))

    def _supplied(self, node: ast.expr) -> Supplied:
        """Return the models that an argument of a transform names; none if it is a function."""
        names = elements_of(node)
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
