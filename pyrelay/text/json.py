"""IR as JSON, derived from the dataclass fields: every node, type, span and name, exactly.

The document is a table of nodes, children before parents, each `["Class", field, ...]` with fields
in the order of the dataclass; a field that is a node is `{"at": index}`. A node that two places
share is one entry, so variables keep their identity. Nothing recurses on program depth.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeVar, final

from ..diagnostics.catalogue.text import DamagedData
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import SourceFile, Span
from ..ir import dims, expr, module, transforms, types
from ..ir.dims import Dim
from ..ir.expr import Expr
from ..ir.module import Module, ModuleKey
from ..ir.op import Op
from ..operators.table import BY_NAME
from .json_fields import check_fields

T = TypeVar("T")
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


def to_json(program: Any, attributes: Attributes = ()) -> str:
    """Return a module, an expression, or a value of the classes of `attributes` as JSON, one node a
    line. A module may have `attributes`."""
    encoder = _Encoder(attributes)
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
    decoder = _Decoder(operators, (), checked=True)
    program = _decoded(file, decoder)
    if not isinstance(program, Module | Expr):
        place = node_place(file, decoder.count - 1)
        raise CheckError(DamagedData(place, f"its root is a {type(program).__name__}"))
    return program


def kept_value(text: str, kind: type[T], attributes: Attributes = ()) -> T | None:
    """Return the value of a document that was kept as it was written, so that the types of fields
    need no check; None where it is no document of a value of that kind."""
    decoder = _Decoder(BY_NAME, attributes, checked=False)
    try:
        value = _decoded(SourceFile("<json>", text), decoder)
    except CheckError:
        return None
    return value if isinstance(value, kind) else None


def _decoded(file: SourceFile, decoder: _Decoder) -> Any:
    try:
        document = json.loads(file.text)
    except (ValueError, RecursionError) as error:
        raise CheckError(DamagedData(syntax_place(file, error), str(error))) from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise CheckError(DamagedData(node_place(file, -1), f"its format is not `{_FORMAT}`"))
    try:
        return decoder.decode(document)
    except _DAMAGE as error:
        place, why = node_place(file, decoder.count), f"{type(error).__name__}: {error}"
        raise CheckError(DamagedData(place, why)) from error


def _classes(*owners: ModuleType, kind: type) -> dict[str, Any]:
    return {
        name: value
        for owner in owners
        for name, value in vars(owner).items()
        if isinstance(value, type) and value.__module__ == owner.__name__
        if issubclass(value, Enum) is (kind is Enum)
    }


Attributes: TypeAlias = Sequence[ModuleKey[Any]]
"""Attributes of modules, which say the classes of their data."""

_OWNERS: Final = (dims, types, transforms, expr, module)
_NODES: Final = {n: c for n, c in _classes(*_OWNERS, kind=object).items() if c is not ModuleKey}
_ENUMS: Final = _classes(*_OWNERS, kind=Enum)


def _field_names(node: Any) -> tuple[str, ...]:
    return ("terms",) if node is Dim else tuple(f.name for f in dataclasses.fields(node))


@final
class _Classes:
    """The classes of a document, by name: those of the IR, and those of attributes."""

    def __init__(self, attributes: Attributes) -> None:
        more = {cls.__name__: cls for attribute in attributes for cls in attribute.classes}
        enums = {name: cls for name, cls in more.items() if issubclass(cls, Enum)}
        known = {n: c for n, c in _NODES.items() if c is Dim or dataclasses.is_dataclass(c)}
        others = {name: cls for name, cls in more.items() if name not in enums}
        self.attributes: Final = attributes
        self.enums: Final[Mapping[str, Any]] = {**_ENUMS, **enums}
        self.by_name: Final[Mapping[str, Any]] = {**known, **others}
        self.fields: Final = {name: _field_names(cls) for name, cls in self.by_name.items()}
        self.nodes: Final = frozenset(self.by_name.values())
        self.by_identity: Final = frozenset(
            name
            for name, cls in known.items()
            if cls is not Dim and not all(f.compare for f in dataclasses.fields(cls))
        ).union(others)
        """Classes whose equality leaves a field out, so that equal ones may differ, and those of
        attributes, which may hold what has no hash."""


@cache
def _known_classes(attributes: tuple[ModuleKey[Any], ...]) -> _Classes:
    return _Classes(attributes)


_PLAIN: Final = frozenset((type(None), bool, int, str))
"""Classes of values that JSON has."""


@final
class _Encoder:
    """The table of nodes in the making."""

    def __init__(self, attributes: Attributes) -> None:
        self._classes: Final = _known_classes(tuple(attributes))
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
            fields = [self._value(getattr(node, f), waiting) for f in self._classes.fields[name]]
            if waiting:
                pending += reversed(waiting)
                continue
            pending.pop()
            self._index[self._key(node)] = self._places[id(node)] = len(self.nodes)
            self.nodes.append([name, *fields])
        return self._places[id(root)]

    def _place(self, node: Any) -> int | None:
        """Return the place of a node, or of one that is the same; None if it has none yet."""
        place = self._places.get(id(node))
        if place is None and (place := self._index.get(self._key(node))) is not None:
            self._places[id(node)] = place
        return place

    def _key(self, node: Any) -> object:
        """Return the key by which nodes are shared: its identity, or its fields if they all
        count."""
        return id(node) if type(node).__name__ in self._classes.by_identity else node

    def _value(self, value: Any, waiting: list[Any]) -> Json:
        """Return a value of a field; nodes in it that have no place yet are added to `waiting`."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple:
            return [self._value(v, waiting) for v in value]
        if kind in self._classes.nodes:
            place = self._place(value)
            if place is None:
                waiting.append(value)
            return {"at": place}
        if kind is not Span and isinstance(value, Mapping):
            pairs = value.items()
            return {"map": [[self._value(k, waiting), self._value(v, waiting)] for k, v in pairs]}
        return self._leaf(value)

    def _leaf(self, value: Any) -> Json:
        """Return a value that holds no nodes."""
        match value:
            case ModuleKey(name=name) if value in self._classes.attributes:
                return {"attribute": name}
            case Span(file, start, end, because):
                return {"span": [self._file(file), start, end, *([because] if because else [])]}
            case Enum():
                return {"enum": [type(value).__name__, value.name]}
            case Op(name=name):
                return {"op": name}
            case str():
                return str(value)  # a name of a kind of its own
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


@final
class _Decoder:
    """The nodes of a document, from first to last."""

    def __init__(
        self, operators: Mapping[str, Op], attributes: Attributes, *, checked: bool
    ) -> None:
        self._classes: Final = _known_classes(tuple(attributes))
        self._is_checked: Final = checked
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
            names = self._classes.fields[name]
            fields = dict(zip(names, map(self._value, values), strict=True))
            node = self._classes.by_name[name](**fields)
            if self._is_checked:
                check_fields(node)
            self._nodes.append(node)
        return self._nodes[document["root"]]

    def _value(self, value: Json) -> Any:
        cls = type(value)
        if cls is list:
            return tuple([self._value(v) for v in value])
        if cls is not dict:
            return value
        ((kind, content),) = value.items()
        return self._nodes[content] if kind == "at" else self._tagged(kind, content)

    def _tagged(self, kind: str, content: Json) -> Any:
        match kind:
            case "float":
                return float(content)
            case "bytes":
                return base64.b64decode(content, validate=True)
            case "map":
                return {self._value(k): self._value(v) for k, v in content}
            case "span":
                source, *rest = content
                return Span(self._files[source], *rest)
            case "enum":
                owner, name = content
                return self._classes.enums[owner][name]
            case "attribute":
                return next(a for a in self._classes.attributes if a.name == content)
            case "op":
                return self._operators[content]
            case _:
                raise ValueError(f"`{kind}` is no kind of value")


_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def syntax_place(file: SourceFile, error: ValueError | RecursionError) -> Span:
    """Return the place where a text stops being JSON."""
    at = error.pos if isinstance(error, json.JSONDecodeError) else 0
    return Span(file, at, min(at + 1, len(file.text)))


def node_place(file: SourceFile, index: int) -> Span:
    """Return the place of a node of a document, or its beginning if there is no such node."""
    text = file.text
    nodes = next((at for key, at in _members(text) if key == "nodes"), len(text))
    if text[nodes : nodes + 1] == "[":
        for number, (start, end) in enumerate(_elements(text, nodes)):
            if number == index:
                return Span(file, start, end)
    return Span(file, 0, min(1, len(text)))


def _members(text: str) -> Iterator[tuple[Any, int]]:
    """Return the keys of the object that a text is, with the places of their values."""
    at = _skip(text, 0)
    while text[at : at + 1] in ("{", ","):
        at = _skip(text, at + 1)
        if text[at : at + 1] == "}":
            return
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        yield key, at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Return the places of the elements of the array that begins at a place."""
    while text[at : at + 1] in ("[", ","):
        start = _skip(text, at + 1)
        if text[start : start + 1] == "]":
            return
        at = _DECODER.raw_decode(text, start)[1]
        yield start, at
        at = _skip(text, at)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
