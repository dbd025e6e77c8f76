"""Attributes of calls and options of transforms, read from terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from ...diagnostics.catalogue.text import DefinedTwice
from ...diagnostics.diagnostic import CheckError
from ...ir.expr import Expr
from ...ir.traverse import Steps
from ...ir.types import DTYPES, Type
from . import literals as read_literals
from .context import Syntax, TextContext, tree_of, trees_of, word_of
from .metadata import Metadata
from .types import TypeReader

if TYPE_CHECKING:
    from lark import Token


@final
class AttributeReader:
    """Reads attributes; `body` reads an expression in braces, which may be one before inference."""

    def __init__(
        self,
        place: TextContext,
        types: TypeReader,
        body: Callable[[Syntax, Type | None], Steps[Expr]],
    ) -> None:
        self._place: Final = place
        self._types: Final = types
        self._body: Final = body

    def read(self, trees: list[Syntax]) -> Steps[dict[str, Any]]:
        """Return attributes by name."""
        found: dict[str, Any] = {}
        first: dict[str, Token] = {}
        for tree in trees:
            if tree.data != "attribute":
                self._types.fail(tree, "an option such as `wrt=(0,)`")
            token = word_of(tree)
            name = self._place.name(token)
            if name in first:
                spans = self._place.of(token), self._place.of(first[name])
                raise CheckError(DefinedTwice(spans[0], "attribute", name, spans[1]))
            first[name] = token
            found[name] = yield self._attribute(tree_of(tree.children[1]))
        return found

    def _attribute(self, tree: Syntax) -> Steps[Any]:
        match tree.data:
            case "body":
                return (yield self._body(tree, None))
            case "term_tuple" | "term_list":
                parts = trees_of(tree)
                if tree.data == "term_list":
                    parts = trees_of(parts[0])
                items: list[Any] = []
                for child in parts:
                    read = yield self._attribute(child)
                    items.append(read)
                return tuple(items)
            case "term_group":
                return (yield self._attribute(tree_of(tree.children[0])))
            case "called" if word_of(tree) in {"Dim", "Type"}:
                inner = tree_of(tree_of(tree.children[1]).children[0])
                is_dim = word_of(tree) == "Dim"
                return self._types.dim(inner) if is_dim else self._types.type(inner)
            case _:
                return self._plain_attribute(tree)

    def _plain_attribute(self, tree: Syntax) -> Any:
        match tree.data:
            case "term_string":
                return self._place.string(word_of(tree))
            case "term_word":
                return {"True": True, "False": False}.get(word_of(tree))
            case "term_number":
                return read_literals.weak(self._place, word_of(tree), negative=False)
            case "meta":
                return self._place.from_metadata(tree, Metadata.integer)
            case "term_name" if word_of(tree) in DTYPES:
                return DTYPES[word_of(tree)]
            case "arithmetic":
                minus, *rest = tree.children
                number = rest[0] if len(rest) == 1 else None
                if number is not None and minus == "-" and tree_of(number).data == "term_number":
                    return read_literals.weak(self._place, word_of(tree_of(number)), negative=True)
                return self._types.dim(tree)
            case _:
                return self._types.dim(tree)
