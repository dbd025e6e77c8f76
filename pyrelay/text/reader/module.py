"""Whole texts: header, data types, functions. Definitions may stand in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Final, final

from lark import Token, Tree

from ...dataclass import dataclass
from ...diagnostics.catalogue.text import DefinedTwice, MalformedType, UnknownVersion
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import SourceFile
from ...ir.dims import Dim, DimHole
from ...ir.expr import Expr, Function
from ...ir.linking import Library
from ...ir.module import AdtDef, ConstructorDef, Module
from ...ir.op import Op
from ...ir.traverse import run
from ...ir.types import Type, dim_names, dims, map_type
from ...relay05.imported import Imported
from ..dialect import OWN, RELAY
from ..implied import Implied
from ..types import TypeScope
from .context import Syntax, TextContext, tree_of, trees_of, word_of
from .exprs import ExprReader
from .types import FunctionHead, TypeReader
from .vocabulary import Vocabulary

_UNKNOWN: Final = DimHole(0)


@dataclass(frozen=True, slots=True)
class _Header:
    typed: bool
    strict: bool
    sources: Mapping[int, SourceFile]


@final
@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text that has been parsed, and what its names may refer to."""

    tree: Syntax
    place: TextContext
    operators: Mapping[str, Op | Imported]
    library: Library
    """Functions and data types that a text may use without defining them."""


def read_module(text: ParsedText, sources: Mapping[str, SourceFile]) -> Module:
    """Return the module of a parsed text. Raises CheckError."""
    tree, library = text.tree, text.library.module
    header = _header(tree, text.place, sources)
    place = replace(text.place, sources=header.sources)
    type_defs = _by_name(place, tree, "type_def", "data type")
    function_defs = _by_name(place, tree, "function_def", "function")
    others = {n: d for n, d in library.adts.items() if n not in type_defs}
    arities = {n: len(d.type_params) for n, d in others.items()}
    arities |= {n: _arity(d) for n, d in type_defs.items()}
    types = TypeReader(place, TypeScope(arities, arities), closed=True)
    own_adts = {name: _adt(place, types, name, d) for name, d in type_defs.items()}
    if place.dialect.flat_constructors:
        _refuse_shared_names(place, type_defs)
    adts = others | own_adts
    names = {*library.functions, *function_defs}
    words = Vocabulary(place, text.operators, _owners(own_adts, others), adts, names)
    signatures: dict[str, Type] = {}
    reader = ExprReader(words, types, Implied(signatures, adts), typed=header.typed)
    heads = {name: _head(reader, d) for name, d in function_defs.items()}
    if header.typed:
        signatures.update((name, h.type) for name, h in heads.items() if h.type is not None)
    functions = {
        name: _function(place, reader, d, heads[name], name) for name, d in function_defs.items()
    }
    return text.library.link(Module(functions, own_adts, header.strict))


def read_expr(text: ParsedText) -> Expr:
    """Return the expression of a parsed text. Raises CheckError."""
    types = TypeReader(text.place, TypeScope({}), closed=False)
    words = Vocabulary(text.place, text.operators, {}, None, None)
    reader = ExprReader(words, types, Implied({}, {}), typed=False)
    pragmas = [c for c in text.tree.children if isinstance(c, Tree) and c.data == "pragma"]
    if pragmas:
        _header(text.tree, text.place, {})
    *free, block = (c for c in text.tree.children[len(pragmas) :] if isinstance(c, Tree))
    reader.bind(reader.binder(tree_of(f.children[0])) for f in free)
    return run(reader.block(block, None))


def _header(tree: Syntax, place: TextContext, known: Mapping[str, SourceFile]) -> _Header:
    typed, strict = False, not place.dialect.weak_numbers
    allowed = {"typed", "strict"} if place.dialect is OWN else set[str]()
    language, version = place.dialect.header
    sources: dict[int, SourceFile] = {}
    for pragma in tree.children:
        if not isinstance(pragma, Tree) or pragma.data != "pragma":
            break
        name, number, value, *flags = pragma.children
        assert isinstance(value, Token)
        text = place.string(value)
        if name == "source" and number is not None:
            sources[int(str(number))] = known.get(text) or SourceFile(text, "")
        elif (name, number, text) == (language, None, version) and set(flags) <= allowed:
            typed, strict = "typed" in flags, strict or "strict" in flags
        else:
            span = place.of(pragma)
            headers = tuple(f'#[{n} = "{v}"]' for n, v in (OWN.header, RELAY.header))
            raise CheckError(UnknownVersion(span, span.text, headers))
    return _Header(typed, strict, sources)


def _by_name(place: TextContext, tree: Syntax, rule: str, what: str) -> dict[str, Syntax]:
    """Return the definitions of one kind by name. Raises CheckError for a repeated name."""
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


def _arity(tree: Syntax) -> int:
    """Return the number of type parameters of a data type."""
    _, _, generics, *_ = tree.children
    return len(list(trees_of(generics))) if isinstance(generics, Tree) else 0


def _adt(place: TextContext, types: TypeReader, name: str, tree: Syntax) -> AdtDef:
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


def _constructor(place: TextContext, types: TypeReader, tree: Syntax) -> ConstructorDef:
    word, inside = tree.children
    assert isinstance(word, Token)
    fields = [c for c in inside.children if isinstance(c, Tree)] if isinstance(inside, Tree) else []
    names = [place.name(word_of(f)) for f in fields if f.data == "named_field"]
    if names and len(names) < len(fields):
        message = "either all fields of a constructor have names, or none"
        raise CheckError(MalformedType(place.of(tree), message, "a name for each field"))
    found = named_dims(tuple(types.type(tree_of(f.children[-1])) for f in fields))
    return ConstructorDef(place.name(word), found, tuple(names))


def _head(reader: ExprReader, tree: Syntax) -> FunctionHead:
    """Return the signature of a global function, which is general in its unknown dims."""
    found = reader.signature(tree_of(tree.children[2]))
    annotated = tuple(p.ty for p in found.params if p.ty is not None)
    if not any(dim.has_holes() for ty in annotated for dim in dims(ty)):
        return found
    types = iter(named_dims(annotated))
    params = tuple(p if p.ty is None else replace(p, ty=next(types)) for p in found.params)
    return replace(found, params=params)


def named_dims(types: tuple[Type, ...]) -> tuple[Type, ...]:
    """Return types with a name for each unknown dim: `?` in a parameter or in a field."""
    taken = {name for ty in types for name in dim_names(ty)}
    names = (f"d{i}" for i in count() if f"d{i}" not in taken)

    def name(dim: Dim) -> Dim:
        if _UNKNOWN not in dim.atoms():
            return dim
        fresh = Dim.of(next(names))
        return dim.substitute(lambda atom: fresh if atom == _UNKNOWN else None)

    return tuple(map_type(ty, lambda _: None, name) for ty in types)


def _owners(own: Mapping[str, AdtDef], library: Mapping[str, AdtDef]) -> dict[str, tuple[str, ...]]:
    """Return the data types that have a constructor of each name; a text's own hide the
    library's."""
    found = _owners_in(own)
    return {**_owners_in(library), **found}


def _owners_in(adts: Mapping[str, AdtDef]) -> dict[str, tuple[str, ...]]:
    owners: dict[str, tuple[str, ...]] = {}
    for adt in adts.values():
        for constructor in adt.constructors:
            owners[constructor.name] = (*owners.get(constructor.name, ()), adt.name)
    return owners


def _refuse_shared_names(place: TextContext, type_defs: Mapping[str, Syntax]) -> None:
    """Stop where two data types have a constructor of one name, or one the name of the other."""
    names = {place.name(word_of(d)): d for d in type_defs.values()}
    first: dict[str, Token] = {}
    for definition in type_defs.values():
        for part in trees_of(definition):
            if part.data != "constructor_def":
                continue
            word = word_of(part)
            owner = names.get(place.name(word), definition)
            other = first.get(word) if owner is definition else word_of(owner)
            if other is not None:
                what = "constructor" if owner is definition else "name"
                first_one, again = sorted(map(place.of, (word, other)), key=lambda s: s.start)
                raise CheckError(DefinedTwice(again, what, str(word), first_one))
            first[word] = word


def _function(
    place: TextContext, reader: ExprReader, tree: Syntax, signature: FunctionHead, name: str
) -> Function:
    span = place.of(tree, tree.children[1])
    function = run(reader.function(signature, tree_of(tree.children[3]), span, name))
    assert isinstance(function, Function)
    return function
