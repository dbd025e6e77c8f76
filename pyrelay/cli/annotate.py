"""Annotations that are missing, where the program determines them.

A parameter has a type where its function says enough of it, or where functions of the file call it
with one type; else its default value has one. Inference finds all of that anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyrelay

from ..decorators import RelayFunction
from ..diagnostics.diagnostic import CheckError, Diagnostic, ParameterFix
from ..diagnostics.source import Span
from ..infer import infer
from ..ir.expr import Function, type_of
from ..ir.module import Module
from ..ir.traverse import nodes_of
from ..ir.types import Type
from ..to_python.file import File
from ..translate.source.definition import Definition
from ..translate.translator import TranslationError, translate

_Location: TypeAlias = tuple[str, int]

_CODE: Final = "RL102"
"""The mistake that a parameter has no annotation."""
_NUMBERS: Final = ("Float", "Int", "Bool")
"""Where a default is a number, its class decides whether the parameter is Python's own."""


def annotated(
    found: Sequence[Diagnostic], functions: Iterable[RelayFunction[..., object]]
) -> list[Diagnostic]:
    """Return diagnostics, those of parameters without annotations with a fix where one is known."""
    wanted = {_place(d.primary.span) for d in found if d.code == _CODE and d.primary is not None}
    if not wanted:
        return list(found)
    fixes: dict[_Location, set[ParameterFix]] = {}
    defaults: dict[_Location, ParameterFix] = {}
    for function in functions:
        definition = function.__relay__
        if not isinstance(definition, Definition):
            continue
        defaults |= _of_defaults(definition)
        for span, ty, module in _types(definition, wanted):
            fix = _fix(span, ty, module, definition.function.__globals__)
            fixes.setdefault(_place(span), set()).update([] if fix is None else [fix])
    known: dict[_Location, ParameterFix] = dict(defaults)
    for place, several in fixes.items():
        if len(several) == 1:
            (fix,) = several
            is_number = place in defaults and fix.annotation in _NUMBERS
            known[place] = defaults[place] if is_number else fix
    return [_with_fix(d, known) for d in found]


def _with_fix(d: Diagnostic, known: Mapping[_Location, ParameterFix]) -> Diagnostic:
    if d.code != _CODE or d.primary is None:
        return d
    return replace(d, fix=known.get(_place(d.primary.span)))


def _place(span: Span) -> _Location:
    return span.file.name, span.start


def _types(definition: Definition, wanted: set[_Location]) -> Iterator[tuple[Span, Type, Module]]:
    """Return the types that inference finds for parameters at the places that are wanted."""
    typed = _typed(definition)
    if typed is None:
        return
    nodes = nodes_of(typed)
    params = (p for n in nodes if isinstance(n, Function) for p in n.params)
    for param in params:
        if _place(param.span) in wanted:
            yield param.span, type_of(param), typed


def _typed(definition: Definition) -> Module | None:
    """Return the typed program of a function; None if it has mistakes beside missing
    annotations."""
    try:
        return infer(translate(definition).module)
    except TranslationError as error:
        if any(d.code != _CODE for d in error.diagnostics):
            return None
        module = error.module
    except CheckError:
        return None
    try:
        return infer(module)
    except CheckError:
        return None


def _fix(span: Span, ty: Type, module: Module, names: Mapping[str, Any]) -> ParameterFix | None:
    """Return the annotation for a type in the names of a file; None where it has no words for
    it."""
    node = File(module).annotation(ty)
    if node is None:
        return None
    imports: dict[str, None] = {}
    sizes = {name for name in _mentioned(node) if name not in names and not _is_ours(name)}
    for name in _mentioned(node):
        if _is_ours(name):
            imports |= {} if name in names else {name: None}
    written = _Sizes(sizes).visit(node)
    if not _mentioned(written).keys() <= {*names, *imports}:
        return None
    text = ast.unparse(ast.fix_missing_locations(written)).replace("'", '"')
    return ParameterFix(span, text, tuple(imports))


def _mentioned(node: ast.AST) -> dict[str, None]:
    return {n.id: None for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_ours(name: str) -> bool:
    return name in vars(pyrelay)


class _Sizes(ast.NodeTransformer):
    """Writes sizes that the file has no name for as text: `Tensor[Float, ("N", 3)]`."""

    def __init__(self, unknown: set[str]) -> None:
        self._unknown: Final = unknown

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Look into the shape of a tensor alone; other names are those of types."""
        self.generic_visit(node)
        is_tensor = isinstance(node.value, ast.Name) and node.value.id == "Tensor"
        if is_tensor and isinstance(node.slice, ast.Tuple):
            element, shape = node.slice.elts
            assert isinstance(shape, ast.Tuple)
            entries = [self._entry(e) for e in shape.elts]
            node.slice.elts[:] = [element, ast.Tuple(entries, ast.Load())]
        return node

    def _entry(self, entry: ast.expr) -> ast.expr:
        if self._unknown.isdisjoint(_mentioned(entry)):
            return entry
        return ast.Constant(ast.unparse(entry))


def _of_defaults(definition: Definition) -> dict[_Location, ParameterFix]:
    """Return the annotations of default values: numbers, bools and strings."""
    source, args = definition.source, definition.source.node.args
    positional = [*args.posonlyargs, *args.args]
    values = definition.function.__defaults__ or ()
    names = [a.arg for a in positional[len(positional) - len(values) :]]
    given: dict[str, Any] = dict(zip(names, values, strict=True))
    given |= definition.function.__kwdefaults__ or {}
    found: dict[_Location, ParameterFix] = {}
    for arg in (*positional, *args.kwonlyargs):
        kind = type(given.get(arg.arg))
        if arg.annotation is None and kind in (bool, int, float, str):
            span = source.span(arg)
            found[_place(span)] = ParameterFix(span, kind.__name__, ())
    return found
