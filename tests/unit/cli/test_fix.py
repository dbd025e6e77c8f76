"""Fixes change what they name and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrelay.cli.fix import apply_fixes, replaced
from pyrelay.diagnostics.diagnostic import Diagnostic, Fix, Label
from pyrelay.diagnostics.source import SourceFile, Span


def fix(text: str, old: str, new: str, name: str = "a.py") -> Fix:
    """Return the fix that replaces the first occurrence of `old`."""
    start = text.index(old)
    return Fix(Span(SourceFile(name, text), start, start + len(old)), new)


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("y = a  # keep\n", "a ", "b ", "y = b  # keep\n"),
        ("y = a*b # keep\n", "a*", "relay.cast(a, x)*", "y = relay.cast(a, x)*b # keep\n"),
        ("y = f( a,b )\n", "a", "relay.cast(a, Float)", "y = f( relay.cast(a, Float),b )\n"),
        ("λ = 'é' + a\n", "a", "b.c", "λ = 'é' + b.c\n"),
    ],
)
def test_a_replacement_keeps_the_formatting_around_it(
    text: str, old: str, new: str, result: str
) -> None:
    assert replaced(text, fix(text, old, new)) == result


@pytest.mark.parametrize(
    ("text", "new", "result"),
    [
        ("y = x * b\n", "a + c", "y = (a + c) * b\n"),
        ("y = -x\n", "a + c", "y = -(a + c)\n"),
        ("y = x.T\n", "a @ c", "y = (a @ c).T\n"),
        ("y = (x) * b\n", "a + c", "y = (a + c) * b\n"),
        ("y = f(x)\n", "a + c", "y = f(a + c)\n"),
        ("y = x + b\n", "a + c", "y = a + c + b\n"),
        ("y = b - x\n", "a - c", "y = b - (a - c)\n"),
        ("y = x\n", "a, c", "y = a, c\n"),
        ("y = f(x)\n", "a if b else c", "y = f(a if b else c)\n"),
    ],
)
def test_parentheses_are_added_exactly_where_the_meaning_needs_them(
    text: str, new: str, result: str
) -> None:
    assert replaced(text, fix(text, "x", new)) == result


def test_an_insertion_is_spliced() -> None:
    text = "def f(x):\n    return x\n"
    at = text.index("x)") + 1
    insertion = Fix(Span(SourceFile("a.py", text), at, at), ": Float")
    assert replaced(text, insertion) == "def f(x: Float):\n    return x\n"


def test_a_fix_that_breaks_the_file_is_refused() -> None:
    text = "y = a\n"
    assert replaced(text, fix(text, "a", "b c")) is None
    assert replaced(text, fix(text, "= a", "= (")) is None


def diagnostic(fix: Fix) -> Diagnostic:
    """Return a mistake with a fix."""
    return Diagnostic(code="RL999", title="t", primary=Label(fix.span, ""), fix=fix)


def test_a_file_keeps_its_line_ends_and_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes("# -*- coding: latin-1 -*-\r\nx = 'é'\r\ny = x\r\n".encode("latin-1"))
    text = "# -*- coding: latin-1 -*-\nx = 'é'\ny = x\n"
    found = diagnostic(fix(text, "'é'", "'è'", str(path)))
    assert apply_fixes([found]) == [found]
    assert path.read_bytes() == "# -*- coding: latin-1 -*-\r\nx = 'è'\r\ny = x\r\n".encode(
        "latin-1"
    )


def test_several_fixes_of_a_file_are_applied_and_overlapping_ones_are_left(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    text = "y = f(a, b)\n"
    path.write_text(text)
    outer = diagnostic(fix(text, "f(a, b)", "g(b)", str(path)))
    inner = diagnostic(fix(text, "b", "c + 1", str(path)))
    first = diagnostic(fix(text, "a", "d", str(path)))
    assert apply_fixes([outer, first, inner]) == [inner, first]
    assert path.read_text() == "y = f(d, c + 1)\n"


def test_a_file_that_changed_since_it_was_checked_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("y = a + 1\n")
    assert apply_fixes([diagnostic(fix("y = a\n", "a", "b", str(path)))]) == []
    assert path.read_text() == "y = a + 1\n"


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text("y = a\n")
    found = diagnostic(fix("y = a\n", "a", "b", str(path)))

    def full(_: Path, __: Path) -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        apply_fixes([found])
    assert path.read_text() == "y = a\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_fixed_file_keeps_its_permissions_and_the_links_to_it(tmp_path: Path) -> None:
    path, link = tmp_path / "a.py", tmp_path / "link.py"
    path.write_text("y = a\n")
    path.chmod(0o754)
    link.symlink_to(path)
    found = diagnostic(fix("y = a\n", "a", "b", str(link)))
    assert apply_fixes([found]) == [found]
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("y = b\n", 0o754)
