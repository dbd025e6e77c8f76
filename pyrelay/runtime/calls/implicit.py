"""The implicit values of a call, which scripts give by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.diagnostic import RunError
from ...translate.translator import Translation


def implicit_values(translation: Translation, name: str, given: Mapping[str, Any]) -> list[Any]:
    """Return the implicit values of the program of a function, in order; `given` are the values of
    a call by names that are no parameter's. Raises RunError where one is missing, or is none of the
    program's."""
    wanted = translation.signature.implicit
    names = {p.name for p in wanted}
    for unknown in (n for n in given if n not in names):
        why = f"got an unexpected keyword argument {unknown!r}"
        raise RunError(WrongCall(name, translation.head, why))
    for missing in (p.name for p in wanted if p.required and p.name not in given):
        why, way = f"needs the implicit `{missing}`", f"pass it by name: `{missing}=...`"
        raise RunError(WrongCall(name, translation.head, why, way))
    return [given.get(p.name, p.default) for p in wanted]
