"""IR as JSON, derived from the dataclass fields: every node, type, span and name, exactly.

The document is a table of nodes, children before parents, each `["Class", field, ...]` with fields
in the order of the dataclass; a field that is a node is `{"at": index}`. A node that two places
share is one entry, so variables keep their identity. Nothing recurses on program depth.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any, Final, TypeAlias, final

from ..diagnostics.catalogue.text import DamagedData
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import SourceFile, Span
from ..ir import dims, expr, module, transforms, types
from ..ir.dims import Dim
from ..ir.expr import Expr
from ..ir.module import Module
from ..ir.op import Op
from ..operators.table import BY_NAME
from .json_fields import check_fields
from .json_places import node_place, syntax_place

Json: TypeAlias = Any
"""A value that `json` reads and writes."""

_FORMAT: Final = "pyrelay-ir 1"


_DAMAGE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions of the construction of nodes from a modified document."""


def to_json(program: Module | Expr) -> str:
    """Return a module or an expression as JSON, one node a line."""
    encoder = _Encoder()
    root = encoder.encode(program)
    head = {"format": _FORMAT, "sources": encoder.sources, "root": root}
    nodes = ",\n".join(map(json.dumps, encoder.nodes))
    return f'{json.dumps(head)[:-1]}, "nodes": [\n{nodes}\n]}}\n'


def from_json(
    text: str, name: str = "<json>", *, operators: Mapping[str, Op] = BY_NAME
) -> Module | Expr:
    """Return the program of a JSON document, with `operators` by name. Raises CheckError, which
    shows where in the document of that `name` the mistake is.

    The program is as well-formed as the one that was written; `verify` checks one that may have
    been changed since.
    """
    file = SourceFile(name, text)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckError(DamagedData(syntax_place(file, error), str(error))) from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise CheckError(DamagedData(node_place(file, -1), f"its format is not `{_FORMAT}`"))
    decoder = _Decoder(operators)
    try:
        program = decoder.decode(document)
    except _DAMAGE as error:
        place, why = node_place(file, decoder.count), f"{type(error).__name__}: {error}"
        raise CheckError(DamagedData(place, why)) from error
    if not isinstance(program, Module | Expr):
        place = node_place(file, decoder.count - 1)
        raise CheckError(DamagedData(place, f"its root is a {type(program).__name__}"))
    return program


def _classes(*owners: ModuleType, kind: type) -> dict[str, Any]:
    return {
        name: value
        for owner in owners
        for name, value in vars(owner).items()
        if isinstance(value, type) and value.__module__ == owner.__name__
        if issubclass(value, Enum) is (kind is Enum)
    }


_OWNERS: Final = (dims, types, transforms, expr, module)
_NODES: Final = _classes(*_OWNERS, kind=object)
_ENUMS: Final = _classes(*_OWNERS, kind=Enum)


def _field_names(node: Any) -> tuple[str, ...]:
    return ("terms",) if node is Dim else tuple(f.name for f in dataclasses.fields(node))


_FIELDS: Final = {
    name: _field_names(node)
    for name, node in _NODES.items()
    if node is Dim or dataclasses.is_dataclass(node)
}
_BY_IDENTITY: Final = frozenset(
    name
    for name in _FIELDS
    if name != "Dim" and not all(f.compare for f in dataclasses.fields(_NODES[name]))
)
"""Classes whose equality leaves a field out, so that equal ones may differ."""
_NODE_CLASSES: Final = frozenset(_NODES[name] for name in _FIELDS)
_PLAIN: Final = frozenset((type(None), bool, int, str))
"""Classes of values that JSON has."""


@final
class _Encoder:
    """The table of nodes in the making."""

    def __init__(self) -> None:
        self.nodes: Final[list[Json]] = []
        self.sources: Final[list[Json]] = []
        self._index: Final[dict[Any, int]] = {}
        self._places: Final[dict[int, int]] = {}
        """The places of nodes by identity: equal nodes are hashed and compared once each."""
        self._files: Final[dict[SourceFile, int]] = {}

    def encode(self, root: Any) -> int:
        """Put a node and all it holds into the table; return its place."""
        pending = [root]
        while pending:
            node = pending[-1]
            if self._place(node) is not None:
                pending.pop()
                continue
            name, waiting = type(node).__name__, []
            fields = [self._value(getattr(node, f), waiting) for f in _FIELDS[name]]
            if waiting:
                pending += reversed(waiting)
                continue
            pending.pop()
            self._index[_key(node)] = self._places[id(node)] = len(self.nodes)
            self.nodes.append([name, *fields])
        return self._places[id(root)]

    def _place(self, node: Any) -> int | None:
        """Return the place of a node, or of one that is the same; None if it has none yet."""
        place = self._places.get(id(node))
        if place is None and (place := self._index.get(_key(node))) is not None:
            self._places[id(node)] = place
        return place

    def _value(self, value: Any, waiting: list[Any]) -> Json:
        """Return a value of a field; nodes in it that have no place yet are added to `waiting`."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple:
            return [self._value(v, waiting) for v in value]
        if kind in _NODE_CLASSES:
            place = self._place(value)
            if place is None:
                waiting.append(value)
            return {"at": place}
        if kind is not Span and isinstance(value, Mapping):
            return {"map": [[k, self._value(v, waiting)] for k, v in value.items()]}
        return self._leaf(value)

    def _leaf(self, value: Any) -> Json:
        """Return a value that holds no nodes."""
        match value:
            case Span(file, start, end, because):
                return {"span": [self._file(file), start, end, *([because] if because else [])]}
            case Enum():
                return {"enum": [type(value).__name__, value.name]}
            case Op(name=name):
                return {"op": name}
            case float():
                return {"float": repr(value)}
            case bytes():
                return {"bytes": base64.b64encode(value).decode()}
            case _:
                raise TypeError(f"a {type(value).__name__} has no place in JSON")

    def _file(self, file: SourceFile) -> int:
        if file not in self._files:
            self._files[file] = len(self.sources)
            self.sources.append([file.name, file.text])
        return self._files[file]


def _key(node: Any) -> object:
    """Return what makes a node the same as another: its identity, or its fields if they all
    count."""
    return id(node) if type(node).__name__ in _BY_IDENTITY else node


@final
class _Decoder:
    """The nodes of a document, from first to last."""

    def __init__(self, operators: Mapping[str, Op]) -> None:
        self._files: Final[list[SourceFile]] = []
        self._operators: Final = operators
        self._nodes: Final[list[Any]] = []

    @property
    def count(self) -> int:
        """The number of nodes that have been read."""
        return len(self._nodes)

    def decode(self, document: Json) -> Any:
        """Return the root of a document."""
        self._files.extend(SourceFile(name, text) for name, text in document["sources"])
        for name, *values in document["nodes"]:
            names = _FIELDS[name]
            fields = dict(zip(names, map(self._value, values), strict=True))
            node = _NODES[name](**fields)
            check_fields(node)
            self._nodes.append(node)
        return self._nodes[document["root"]]

    def _value(self, value: Json) -> Any:
        if isinstance(value, list):
            return tuple(self._value(v) for v in value)
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        match kind:
            case "float":
                return float(content)
            case "bytes":
                return base64.b64decode(content, validate=True)
            case "map":
                return {k: self._value(v) for k, v in content}
            case "span":
                source, *rest = content
                return Span(self._files[source], *rest)
            case "enum":
                owner, name = content
                return _ENUMS[owner][name]
            case "op":
                return self._operators[content]
            case "at":
                return self._nodes[content]
            case _:
                raise ValueError(f"`{kind}` is no kind of value")
