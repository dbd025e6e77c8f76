"""`check FILE`: every mistake in every compiled function of a file, as text or JSON, or fixed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ..diagnostics.diagnostic import (
    CaseFix,
    Diagnostic,
    Fix,
    Label,
    ParameterFix,
    RelayError,
    Severity,
)
from ..diagnostics.render import file_name
from ..diagnostics.source import Span
from .annotate import annotated
from .load import forget, functions, load
from .texts import is_text, load_text

_MOST_FIXES: Final = 1_000
"""Fixes that make each other necessary end here."""


def check(file: Path, *, as_json: bool, fix: bool) -> int:
    """Check a file, print what is wrong, and give 1 if something is."""
    found, checked = mistakes(file)
    fixed: list[Diagnostic] = []
    if fix:
        from .fix import apply_fixes  # needs libcst

        # What is put right may bring to light what was hidden by it.
        while done := apply_fixes(found) if len(fixed) < _MOST_FIXES else []:
            fixed += done
            forget(file)
            found, checked = mistakes(file)
    if as_json:
        _write_json(found, fixed, checked)
    else:
        _write_text(file, found, fixed, checked)
    return 1 if any(d.severity is Severity.ERROR for d in found) else 0


def mistakes(file: Path) -> tuple[list[Diagnostic], int]:
    """Give mistakes and warnings of a file, each once, and the number of functions looked at."""
    if is_text(file):
        return _mistakes_of_text(file)
    try:
        module = load(file)
    except RelayError as error:
        return _each_once(error.diagnostics), 0
    found: list[Diagnostic] = []
    checked = functions(module)
    for function in checked.values():
        try:
            found += function.check().warnings
        except RelayError as error:
            found += error.diagnostics
    return annotated(_each_once(found), checked.values()), len(checked)


def _mistakes_of_text(file: Path) -> tuple[list[Diagnostic], int]:
    try:
        module = load_text(file)
        return _each_once(module.check().warnings), len(module)
    except RelayError as error:
        return _each_once(error.diagnostics), 0


def _each_once(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Drop repetitions: a mistake shows again in every function that reaches it."""
    found: dict[tuple[str, str, tuple[str, int, int] | None], Diagnostic] = {}
    for d in diagnostics:
        span = None if d.primary is None else d.primary.span
        place = None if span is None else (span.file.name, span.start, span.end)
        found.setdefault((d.code, d.title, place), d)
    return list(found.values())


def _write_text(
    file: Path, found: Sequence[Diagnostic], fixed: Sequence[Diagnostic], checked: int
) -> None:
    errors = sum(d.severity is Severity.ERROR for d in found)
    for stream, severity in ((sys.stderr, Severity.WARNING), (sys.stdout, Severity.ERROR)):
        shown = [d for d in found if d.severity is severity]
        if shown:
            from ..diagnostics.colour import print_coloured

            print_coloured(shown, stream, limit=None)
            stream.write("\n")
            stream.flush()
    counts = [_count(errors, "error"), _count(len(found) - errors, "warning")]
    if fixed:
        counts.append(f"{len(fixed)} fixed")
    sys.stdout.write(f"{file}: {_count(checked, 'function')} checked, {', '.join(counts)}\n")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _write_json(found: Sequence[Diagnostic], fixed: Sequence[Diagnostic], checked: int) -> None:
    errors = sum(d.severity is Severity.ERROR for d in found)
    data = {
        "checked": checked,
        "errors": errors,
        "warnings": len(found) - errors,
        "diagnostics": [as_data(d) for d in found],
        "fixed": [as_data(d) for d in fixed],
    }
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def as_data(d: Diagnostic) -> dict[str, Any]:
    """Give a diagnostic as JSON data. Lines and columns count from 1, ends are exclusive."""
    return {
        "code": d.code,
        "severity": d.severity.value,
        "title": d.title,
        "primary": None if d.primary is None else _label(d.primary),
        "secondary": [_label(label) for label in d.secondary],
        "notes": list(d.notes),
        "help": d.help,
        "fix": _fix(d.fix),
    }


def _fix(fix: Fix | CaseFix | ParameterFix | None) -> dict[str, Any] | None:
    match fix:
        case Fix(span, replacement):
            return {**_place(span), "replacement": replacement}
        case CaseFix(span, patterns):
            return {**_place(span), "cases": list(patterns)}
        case ParameterFix(span, annotation, imports):
            return {**_place(span), "annotation": annotation, "imports": list(imports)}
        case None:
            return None


def _label(label: Label) -> dict[str, Any]:
    return {**_place(label.span), "text": label.text}


def _place(span: Span) -> dict[str, Any]:
    line, column = span.file.position(span.start)
    end_line, end_column = span.file.position(span.end)
    return {
        "file": file_name(span.file),
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }
