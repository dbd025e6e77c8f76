"""Limits of texts: the nesting of types and patterns, and the digits of a number.

Expressions may nest as deep as memory lasts; types and patterns are walked by plain recursion, here
and in every pass, since nobody writes deep ones.
"""

from __future__ import annotations

from typing import Final

from lark import Token

from ..diagnostics.catalogue.text import BadLiteral, NestedTooDeep
from ..diagnostics.diagnostic import CheckError
from .reader.context import Syntax, TextContext

DEEPEST: Final = 100
"""How deep types, attributes and patterns may nest."""
LONGEST: Final = 1000
"""How many characters a number may have."""

_TERMS: Final = frozenset(
    ("of", "called", "ref_type", "fn_type", "term_tuple", "term_group", "term_list", "arithmetic")
)
_PATTERNS: Final = frozenset(
    ("tuple_pattern", "pattern_group", "constructor_pattern", "as_pattern")
)
_NESTING: Final = _TERMS | _PATTERNS
_BETWEEN: Final = frozenset(("terms", "patterns", "attribute"))
_NUMBERS: Final = frozenset(("NUMBER", "PROJECTION", "HOLE", "SPAN"))


def check_limits(place: TextContext, tree: Syntax) -> None:
    """Stop at what exceeds a limit. Raises CheckError."""
    pending: list[tuple[Syntax, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if node.data in _NESTING:
            depth += 1
            if depth > DEEPEST:
                raise CheckError(NestedTooDeep(place.of(node), DEEPEST))
        elif node.data not in _BETWEEN:
            depth = 0
        for child in node.children:
            if not isinstance(child, Token):
                if child is not None:
                    pending.append((child, depth))
            elif len(child) > LONGEST and child.type in _NUMBERS:
                why = f"a number has at most {LONGEST} characters"
                raise CheckError(BadLiteral(place.of(child), f"{child[:8]}...", why))
