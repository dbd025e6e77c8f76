"""Strings: f-strings, `str(x)`, and the texts of `print`, `assert` and `raise`.

A text is a template as `str.format` takes it, and the values for its places. What is known before
the program runs is in the template, in Python's own words.
"""

from __future__ import annotations

import ast
from typing import Any, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.signatures import BadValue
from ...diagnostics.source import Span
from ...ir.expr import Call, Constant, Expr, Tuple
from ...ir.traverse import Steps
from ...operators.host.text import format_
from ..names.static import CONVERSIONS, static_value
from ..program.context import Context
from ..source.scope import is_known


@final
@dataclass(frozen=True, slots=True)
class Template:
    """A template and the values for its places."""

    template: str
    values: tuple[Expr, ...] = ()

    @property
    def known(self) -> str | None:
        """The string, if it is known before the program runs."""
        return None if self.values else self.template.format()

    def expression(self, span: Span) -> Expr:
        """Return the string as an expression."""
        if self.known is not None:
            return Constant(self.known, span=span)
        values = Tuple(self.values, span=span)
        return Call(format_, (values,), {"template": self.template}, span=span)

    def after(self, words: str) -> Template:
        """Return the text with words in front."""
        return Template(_literal(words) + self.template, self.values)


def text(cx: Context, node: ast.JoinedStr) -> Steps[Expr]:
    """Translate an f-string."""
    return (yield read_text(cx, node)).expression(cx.span(node))


def read_text(cx: Context, node: ast.expr, conversion: str = "") -> Steps[Template]:
    """Return the text that Python's `str` gives of an expression, or that of a conversion."""
    if not isinstance(node, ast.JoinedStr):
        return (yield _value(cx, node, conversion, Template("")))
    parts: list[Template] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            spec = yield _format(cx, part.format_spec)
            parts.append((yield _value(cx, part.value, CONVERSIONS[part.conversion], spec)))
        else:
            assert isinstance(part, ast.Constant)
            parts.append(Template(_literal(str(part.value))))
    template = "".join(p.template for p in parts)
    return Template(template, tuple(v for p in parts for v in p.values))


def _format(cx: Context, node: ast.expr | None) -> Steps[Template]:
    """Return the part of a place after the colon; values in it have places of their own."""
    if node is None:
        return Template("")
    return (yield read_text(cx, node))


def _value(cx: Context, node: ast.expr, conversion: str, spec: Template) -> Steps[Template]:
    known = static_value(cx, node)
    mark = f"!{conversion}" if conversion else ""
    if known is not None and known.exact and is_known(known.value) and spec.known is not None:
        return Template(_literal(_formatted(cx, node, known.value, mark, spec.known)))
    place = f"{{{mark}:{spec.template}}}" if spec.template else f"{{{mark}}}"
    return Template(place, ((yield cx.expression(node)), *spec.values))


def _formatted(cx: Context, node: ast.expr, value: Any, mark: str, spec: str) -> str:
    try:
        return f"{{{mark}:{spec}}}".format(value)
    except (TypeError, ValueError) as error:
        cx.program.report(BadValue(cx.span(node), f"the format `{spec}`", str(error)))
        return ""


def _literal(words: str) -> str:
    return words.replace("{", "{{").replace("}", "}}")
