"""Whole texts: header, data types, functions. Definitions may stand in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lark import Token, Tree

from ...diagnostics.catalogue.text import DefinedTwice, MalformedType, UnknownVersion
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import SourceFile
from ..expr import Expr, Function
from ..module import AdtDef, ConstructorDef, Module
from ..op import Op
from ..traverse import run
from ..types import Type
from .implied import Implied
from .lexis import VERSION
from .place import Place, Syntax, tree_of, word_of
from .read_exprs import ExprReader, Signature
from .read_types import TypeReader
from .types import TypeScope
from .vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class _Header:
    typed: bool
    sources: Mapping[int, SourceFile]


def read_module(
    tree: Syntax, file: SourceFile, operators: Mapping[str, Op], sources: Mapping[str, SourceFile]
) -> Module:
    """Give the module of a parsed text. Raises CheckError."""
    header = _header(tree, Place(file, {}), sources)
    place = Place(file, header.sources)
    type_defs = _by_name(place, tree, "type_def", "data type")
    function_defs = _by_name(place, tree, "function_def", "function")
    types = TypeReader(place, TypeScope(type_defs), closed=True)
    adts = {name: _adt(place, types, name, d) for name, d in type_defs.items()}
    names = {name: word_of(d) for name, d in function_defs.items()}
    words = Vocabulary(place, operators, _owners(adts), adts, names)
    signatures: dict[str, Type] = {}
    reader = ExprReader(words, types, Implied(signatures, adts), typed=header.typed)
    heads = {name: reader.signature(tree_of(d.children[2])) for name, d in function_defs.items()}
    if header.typed:
        signatures.update((name, h.type) for name, h in heads.items() if h.type is not None)
    functions = {
        name: _function(place, reader, d, heads[name], name) for name, d in function_defs.items()
    }
    return Module(functions, adts)


def read_expr(tree: Syntax, file: SourceFile, operators: Mapping[str, Op], *, typed: bool) -> Expr:
    """Give the expression of a parsed text. Raises CheckError."""
    place = Place(file, {})
    types = TypeReader(place, TypeScope({}), closed=False)
    words = Vocabulary(place, operators, {}, None, None)
    reader = ExprReader(words, types, Implied({}, {}), typed=typed)
    *free, block = (c for c in tree.children if isinstance(c, Tree))
    reader.bind(reader.binder(tree_of(f.children[0])) for f in free)
    return run(reader.block(block, None))


def _header(tree: Syntax, place: Place, known: Mapping[str, SourceFile]) -> _Header:
    typed = False
    sources: dict[int, SourceFile] = {}
    for pragma in tree.children:
        if not isinstance(pragma, Tree) or pragma.data != "pragma":
            break
        name, number, value, *flags = pragma.children
        assert isinstance(value, Token)
        text = place.string(value)
        if name == "source" and number is not None:
            sources[int(str(number))] = known.get(text) or SourceFile(text, "")
        elif (name, number, text) == ("pyrelay", None, VERSION) and set(flags) <= {"typed"}:
            typed = bool(flags)
        else:
            span = place.of(pragma)
            raise CheckError(UnknownVersion(span, span.text, VERSION))
    return _Header(typed, sources)


def _by_name(place: Place, tree: Syntax, rule: str, what: str) -> dict[str, Syntax]:
    """Give the definitions of one kind by name. Raises CheckError for a repeated name."""
    found: dict[str, Syntax] = {}
    for definition in tree.children:
        if not isinstance(definition, Tree) or definition.data != rule:
            continue
        token = word_of(definition)
        name = place.name(token)
        if name in found:
            first = place.of(word_of(found[name]))
            raise CheckError(DefinedTwice(place.of(token), what, str(token), first))
        found[name] = definition
    return found


def _adt(place: Place, types: TypeReader, name: str, tree: Syntax) -> AdtDef:
    _, written, generics, *constructors = tree.children
    params = types.params(generics if isinstance(generics, Tree) else None)
    seen: dict[str, ConstructorDef] = {}
    with types.scope.inside(params):
        for constructor in constructors:
            assert isinstance(constructor, Tree)
            found = _constructor(place, types, constructor)
            if found.name in seen:
                again, first = place.of(word_of(constructor)), place.of(tree)
                raise CheckError(DefinedTwice(again, "constructor", found.name, first))
            seen[found.name] = found
    return AdtDef(name, params, tuple(seen.values()), place.of(tree, written))


def _constructor(place: Place, types: TypeReader, tree: Syntax) -> ConstructorDef:
    word, inside = tree.children
    assert isinstance(word, Token)
    fields = [c for c in inside.children if isinstance(c, Tree)] if isinstance(inside, Tree) else []
    names = [place.name(word_of(f)) for f in fields if f.data == "named_field"]
    if names and len(names) < len(fields):
        message = "either all fields of a constructor have names, or none"
        raise CheckError(MalformedType(place.of(tree), message, "a name for each field"))
    found = tuple(types.type(tree_of(f.children[-1])) for f in fields)
    return ConstructorDef(place.name(word), found, tuple(names))


def _owners(adts: Mapping[str, AdtDef]) -> dict[str, tuple[str, ...]]:
    owners: dict[str, tuple[str, ...]] = {}
    for adt in adts.values():
        for constructor in adt.constructors:
            owners[constructor.name] = (*owners.get(constructor.name, ()), adt.name)
    return owners


def _function(
    place: Place, reader: ExprReader, tree: Syntax, signature: Signature, name: str
) -> Function:
    span = place.of(tree, tree.children[1])
    function = run(reader.function(signature, tree_of(tree.children[3]), span, name))
    assert isinstance(function, Function)
    return function
