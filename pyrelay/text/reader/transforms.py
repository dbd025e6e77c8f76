"""Transforms with their options, as the text of a program has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...diagnostics.catalogue.text import MalformedType
from ...diagnostics.diagnostic import CheckError
from ...ir.expr import Expr, Rule, Transform
from ...ir.transforms import NARROW, OPTIONS, RULE_COUNTS
from ..json_fields import check_fields

if TYPE_CHECKING:
    from ...diagnostics.source import Span


def transform_of(
    rule: Rule, values: tuple[Expr, ...], options: dict[str, Any], span: Span
) -> Transform:
    """Return the transform of functions with its options. Raises CheckError."""
    kind, captures = OPTIONS[rule], options.pop("captures", 0)
    policy: tuple[object, ...] = options.pop("policy", ())
    try:
        read = kind(**options)
        check_fields(read)
    except TypeError:
        read = None
    count = RULE_COUNTS.get(rule, 0)
    is_right = type(captures) is int and captures >= 0 and len(values) == 1 + count
    is_known = all(isinstance(name, str) for name in policy)
    if rule is Rule.AUTOCAST:
        is_known = policy == () or policy in {(name,) for name in NARROW}
    if read is None or not is_right or not is_known:
        functions = ", ".join(("@f", *(f"@rule_{i + 1}" for i in range(count))))
        form = f"{rule.value}{{{kind.form}}}({functions})"
        raise CheckError(MalformedType(span, f"`{rule.value}` is not used so", f"`{form}`"))
    function, *rules = values
    names = tuple(map(str, policy))
    return Transform(rule, function, read, captures, rules=tuple(rules), policy=names, span=span)
