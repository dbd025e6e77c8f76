"""`check FILE`: every mistake in every compiled function of a file, as text or JSON, or fixed; of a
folder, in every file that uses pyrelay."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from ..dataclass import dataclass
from ..decorators import RelayFunction, collected_refusals
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
from ..diagnostics.wording import counted
from ..files import replace_file
from ..translate.source.definition import Definition
from .annotate import annotated
from .load import LoadError, forget, functions, is_text, load, load_text

_Key: TypeAlias = tuple[str, str, tuple[str, int, int] | None]
"""The identity of a mistake: the code, the title and the place."""

_MOST_FIXES: Final = 1_000
"""Fixes that make each other necessary end here."""


@final
@dataclass(frozen=True, slots=True)
class _Checked:
    """The mistakes of a file, those that were fixed, and how many functions it has. Those in
    `incomplete` need static arguments, which only their callers pass."""

    file: Path
    found: Sequence[Diagnostic]
    fixed: Sequence[Diagnostic]
    functions: int
    incomplete: Sequence[str]


def check(path: Path, *, as_json: bool, fix: bool, strict: bool = False) -> int:
    """Check a file, or those of a folder, print what is wrong, and return 1 if something is; with
    `strict`, equations of sizes that the types do not imply are wrong too. Raises LoadError for a
    file that cannot be imported; in a folder that is printed, and returns 2."""
    if not path.is_dir():
        checked = [_checked(path, fix=fix, strict=strict)]
        unread = 0
    else:
        checked, unread = _all_checked(path, fix=fix, strict=strict)
    if as_json:
        _write_json(checked)
    else:
        for each in checked:
            _write_text(each)
    errors = any(d.severity is Severity.ERROR for each in checked for d in each.found)
    return 2 if unread else 1 if errors else 0


def _all_checked(folder: Path, *, fix: bool, strict: bool) -> tuple[list[_Checked], int]:
    checked: list[_Checked] = []
    unread = 0
    files = sorted(f for f in folder.rglob("*") if _is_program(f, folder))
    if not files:
        raise LoadError(f"no file in {folder} uses pyrelay")
    for file in files:
        try:
            checked.append(_checked(file, fix=fix, strict=strict))
        except LoadError as error:
            sys.stderr.write(f"{error}\n")
            unread += 1
    return checked, unread


def _is_program(file: Path, folder: Path) -> bool:
    """Return whether a file is a text, or Python that mentions pyrelay. What is hidden is not."""
    if any(part.startswith(".") for part in file.relative_to(folder).parts) or not file.is_file():
        return False
    if file.suffix != ".py":
        return is_text(file) and file.suffix != ".json"  # other programs write JSON too
    return "pyrelay" in file.read_text(encoding="utf-8", errors="replace")


def _checked(file: Path, *, fix: bool, strict: bool) -> _Checked:
    found, functions, incomplete = _mistakes(file, strict=strict)
    fixed: list[Diagnostic] = []
    if fix:
        fixed, left = _fixed(file, found, strict=strict)
        if fixed:
            found, functions, incomplete = _mistakes(file, strict=strict)
        found = [_with_note(d, left) for d in found]
    return _Checked(file, found, fixed, functions, incomplete)


def _fixed(
    file: Path, found: Sequence[Diagnostic], *, strict: bool
) -> tuple[list[Diagnostic], dict[_Key, str]]:
    """Fix a file as far as it goes. What is put right may bring to light what was hidden by it.

    Return the mistakes that are fixed, and those that are left because the file with the fix would
    not check either, with the reason: a case that raises has no type, so a function that calls
    itself in all other cases would have none.
    """
    from .fix import apply_fixes  # libcst is slow to import

    fixed: list[Diagnostic] = []
    left: dict[_Key, str] = {}
    one_by_one = False
    while len(fixed) < _MOST_FIXES:
        known = [d for d in found if d.fix is not None and _key(d) not in left]
        batch = [d for d in known if not isinstance(d.fix, CaseFix)]
        are_cases = not batch
        if are_cases:
            batch = known[:1] if one_by_one else known
        before = _contents(batch)
        done = apply_fixes(batch)
        if not done and not (are_cases and one_by_one and batch):
            break
        forget(file)
        after, _, _ = _mistakes(file, strict=strict)
        undetermined = _undetermined(after) - _undetermined(found)
        if not are_cases or (done and not undetermined):
            fixed += done
            found = after
            continue
        for path, content in before.items():
            replace_file(path, content)
        forget(file)
        if one_by_one:
            left[_key(batch[0])] = next(iter(undetermined), "")
        one_by_one = True
    return fixed, left


def _contents(diagnostics: Iterable[Diagnostic]) -> dict[Path, bytes]:
    """Return the contents of the files that fixes change."""
    paths = {Path(d.fix.span.file.name) for d in diagnostics if d.fix is not None}
    return {p: p.read_bytes() for p in sorted(paths) if p.is_file()}


def _undetermined(found: Iterable[Diagnostic]) -> set[str]:
    return {d.title for d in found if d.code == "RL222"}


def _with_note(d: Diagnostic, left: Mapping[_Key, str]) -> Diagnostic:
    why = left.get(_key(d))
    note = f"not fixed: with a case that raises, {why}; annotate it first"
    return replace(d, notes=(*d.notes, note)) if why else d


def _mistakes(file: Path, *, strict: bool) -> tuple[list[Diagnostic], int, list[str]]:
    """Return mistakes and warnings of a file, each once, the number of functions looked at, and
    those that cannot be looked at alone."""
    if is_text(file):
        return _mistakes_of_text(file, strict=strict)
    with collected_refusals() as refused:
        try:
            module = load(file)
        except RelayError as error:
            errors = (*refused.values(), error)
            return _each_once(d for e in errors for d in e.diagnostics), 0, []
    found = [d for error in refused.values() for d in error.diagnostics]
    incomplete: list[str] = []
    checked = {n: f for n, f in functions(module).items() if f.__relay__ not in refused}
    for name, function in checked.items():
        try:
            found += function.check(strict=strict).warnings
        except RelayError as error:
            if all(_is_incomplete(function, d) for d in error.diagnostics):
                incomplete.append(name)
            else:
                found += error.diagnostics
    looked_at = len(checked) - len(incomplete)
    return annotated(_each_once(found), checked.values()), looked_at, incomplete


def _is_incomplete(function: RelayFunction[..., object], d: Diagnostic) -> bool:
    """Return whether a mistake is that a function alone lacks a static argument."""
    definition = function.__relay__
    if not isinstance(definition, Definition) or d.primary is None:
        return False
    return d.code == "RL108" and d.primary.span == definition.source.head


def _mistakes_of_text(file: Path, *, strict: bool) -> tuple[list[Diagnostic], int, list[str]]:
    try:
        module = load_text(file)
        return _each_once(module.check(strict=strict).warnings), len(module), []
    except RelayError as error:
        return _each_once(error.diagnostics), 0, []


def _each_once(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Drop repetitions: a mistake shows again in every function that reaches it."""
    found: dict[_Key, Diagnostic] = {}
    for d in diagnostics:
        found.setdefault(_key(d), d)
    return list(found.values())


def _key(d: Diagnostic) -> _Key:
    span = None if d.primary is None else d.primary.span
    return d.code, d.title, None if span is None else (span.file.name, span.start, span.end)


def _write_text(checked: _Checked) -> None:
    found = checked.found
    errors = sum(d.severity is Severity.ERROR for d in found)
    for stream, severity in ((sys.stderr, Severity.WARNING), (sys.stdout, Severity.ERROR)):
        shown = [d for d in found if d.severity is severity]
        if shown:
            from ..diagnostics.colour import print_coloured

            print_coloured(shown, stream, limit=None)
            stream.write("\n")
            stream.flush()
    counts = [counted(errors, "error"), counted(len(found) - errors, "warning")]
    if checked.fixed:
        counts.append(f"{len(checked.fixed)} fixed")
    functions = counted(checked.functions, "function")
    sys.stdout.write(f"{checked.file}: {functions} checked, {', '.join(counts)}\n")
    if checked.incomplete:
        names = ", ".join(checked.incomplete)
        sys.stdout.write(f"checked where they get their static arguments: {names}\n")
    elif not checked.functions and not found:
        sys.stdout.write("no name of the file is a function under @relay or @relay_model\n")


def _write_json(checked: Sequence[_Checked]) -> None:
    found = [d for each in checked for d in each.found]
    errors = sum(d.severity is Severity.ERROR for d in found)
    data = {
        "checked": sum(each.functions for each in checked),
        "errors": errors,
        "warnings": len(found) - errors,
        "diagnostics": [as_data(d) for d in found],
        "fixed": [as_data(d) for each in checked for d in each.fixed],
    }
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def as_data(d: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as JSON data. Lines and columns count from 1, ends are exclusive."""
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
