"""Diagnostics are drawn as text with every label on its own line of source."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pyrelay.diagnostics.diagnostic import CheckError, Diagnostic, Fix, Label, RelayError, Severity
from pyrelay.diagnostics.render import render_text
from pyrelay.diagnostics.source import NOWHERE, SourceFile, Span

PROGRAM = SourceFile(
    "train.py",
    dedent(
        """\
        from pyrelay import relay

        @relay
        def lenet(x: Tensor[Float, (1, 28, 28)]):
            h = dense(x, w1)
        \tλ = 漢字 + x
            if a:
                b = foo(1,
                        2,
                        3)
            return x
        """
    ),
)


def label(text: str, says: str = "", nth: int = 1, file: SourceFile = PROGRAM) -> Label:
    """Return a label at the `nth` occurrence of `text`."""
    start = -1
    for _ in range(nth):
        start = file.text.index(text, start + 1)
    return Label(Span(file, start, start + len(text)), says)


def mistake(primary: Label | None, *secondary: Label, **more: Any) -> Diagnostic:
    """Return a diagnostic with these labels."""
    return Diagnostic(code="RL999", title="a mistake", primary=primary, secondary=secondary, **more)


def assert_drawn(expected: str, *diagnostics: Diagnostic) -> None:
    """Compare the rendering with a drawing."""
    assert render_text(diagnostics) == dedent(expected).strip("\n")


def test_a_label_is_underlined_with_its_text_beside_it() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:5:9
          |
        5 |     h = dense(x, w1)
          |         ^^^^^ no such operator
        """,
        mistake(label("dense", "no such operator")),
    )


def test_labels_of_one_line_hang_below_each_other_from_right_to_left() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:5:15
          |
        4 | def lenet(x: Tensor[Float, (1, 28, 28)]):
          |              -------------------------- x has 3 dimensions
        5 |     h = dense(x, w1)
          |         ----- ^  -- the weight
          |         |     |
          |         |     a matrix is needed here
          |         this call
          |
          = help: flatten first: dense(flatten(x), w1)
        """,
        mistake(
            label("x", "a matrix is needed here", nth=2),
            label("Tensor[Float, (1, 28, 28)]", "x has 3 dimensions"),
            label("dense", "this call"),
            label("w1", "the weight"),
            help="flatten first: dense(flatten(x), w1)",
        ),
    )


def test_a_label_inside_another_keeps_both_texts_apart() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:5:15
          |
        5 |     h = dense(x, w1)
          |         ------^-----
          |         |     |
          |         |     the operand
          |         the call
        """,
        mistake(label("x", "the operand", nth=2), label("dense(x, w1)", "the call")),
    )


def test_a_label_inside_the_primary_one_stays_visible() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:5:9
          |
        5 |     h = dense(x, w1)
          |         ^^^^^^-^^^^^
          |         |     |
          |         |     this is a vector
          |         the call
        """,
        mistake(label("dense(x, w1)", "the call"), label("x", "this is a vector", nth=2)),
    )


def test_of_two_labels_at_one_place_the_primary_text_stands_beside_the_line() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:5:9
          |
        5 |     h = dense(x, w1)
          |         ^^^^^ not a function
          |         |
          |         defined here
        """,
        mistake(label("dense", "not a function"), label("dense", "defined here")),
    )


def test_tabs_and_wide_characters_keep_underlines_under_their_text() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:6:9
          |
        6 |     λ = 漢字 + x
          |         ---- ^^^ wide
          |         |
          |         second
        """,
        mistake(label("+ x", "wide"), label("漢字", "second")),
    )


def test_labels_over_several_lines_are_bars_in_lanes_and_long_ones_are_elided() -> None:
    whole = Label(Span(PROGRAM, PROGRAM.text.index("def"), len(PROGRAM.text)), "this function")
    start, end = PROGRAM.text.index("foo(1"), PROGRAM.text.index("3)") + 2
    call = Label(Span(PROGRAM, start, end), "this call")
    assert_drawn(
        """
        error[RL999]: a mistake
          --> train.py:8:13
           |
         4 | /   def lenet(x: Tensor[Float, (1, 28, 28)]):
         5 | |       h = dense(x, w1)
        ...  |
         8 | |           b = foo(1,
           | |  _____________^
         9 | | |                 2,
           | | |                 - two
        10 | | |                 3)
           | | |__________________^ this call
        11 | |       return x
           | |______________- this function
        """,
        mistake(call, whole, label("2", "two", nth=3)),
    )


def test_a_single_line_between_two_labels_is_shown_and_more_are_elided() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
          --> train.py:11:5
           |
         3 | @relay
           |  ----- here
         4 | def lenet(x: Tensor[Float, (1, 28, 28)]):
         5 |     h = dense(x, w1)
           |     ---------
        ...
        11 |     return x
           |     ^^^^^^
        """,
        mistake(label("return"), label("relay", "here", nth=3), label("h = dense")),
    )


def test_labels_in_another_file_follow_under_its_name() -> None:
    other = SourceFile("layers.py", "def dense(x, w):\n    return x @ w\n")
    assert_drawn(
        """
        error[RL999]: a mistake
         --> train.py:5:9
          |
        5 |     h = dense(x, w1)
          |         ^^^^^ called here
         ::: layers.py:2:12
          |
        2 |     return x @ w
          |            ----- multiplied here
        """,
        mistake(label("dense", "called here"), label("x @ w", "multiplied here", file=other)),
    )


def test_notes_of_several_lines_are_indented_and_come_before_help() -> None:
    assert_drawn(
        """
        warning[RL999]: a mistake
         --> train.py:5:9
          |
        5 |     h = dense(x, w1)
          |         ^^^^^
          |
          = note: first
                  second
          = note: third
          = help: write `linear`
        """,
        mistake(
            label("dense"),
            notes=("first\nsecond", "third"),
            fix=Fix(label("dense").span, "linear"),
            severity=Severity.WARNING,
        ),
    )


def test_an_empty_span_at_the_end_of_a_file_still_gets_a_caret() -> None:
    file = SourceFile("short.py", "x = 1")
    assert_drawn(
        """
        error[RL999]: a mistake
         --> short.py:1:6
          |
        1 | x = 1
          |      ^ something is missing
        """,
        mistake(Label(Span(file, 5, 5), "something is missing")),
    )


def test_a_mistake_without_a_place_keeps_its_words() -> None:
    assert_drawn(
        """
        error[RL999]: a mistake
          = note: built by hand
        """,
        mistake(Label(NOWHERE, "built by hand")),
    )
    assert_drawn("error[RL999]: a mistake", mistake(None))


def test_derived_code_says_what_it_was_derived_for() -> None:
    span = label("dense").span.derived("gradient of lenet")
    assert "= note: found in derived code: gradient of lenet" in render_text(
        [mistake(Label(span, ""))]
    )


def test_names_of_files_are_relative_inside_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = SourceFile(str(tmp_path / "sub" / "a.py"), "x")
    outside = SourceFile(str(tmp_path.parent / "b.py"), "x")
    monkeypatch.chdir(tmp_path)
    assert f"--> {Path('sub') / 'a.py'}:1:1" in render_text([mistake(label("x", file=inside))])
    assert f"--> {outside.name}:1:1" in render_text([mistake(label("x", file=outside))])


def test_cells_of_a_notebook_have_the_names_that_ipython_gives_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from IPython.core.compilerop import CachingCompiler

    compiler = CachingCompiler()
    name = compiler.cache("x", number=3)
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    cell = SourceFile(name, "x")
    assert "--> In[3]:1:1" in render_text([mistake(label("x", file=cell))])
    assert "--> train.py:5:9" in render_text([mistake(label("dense"))])


def test_five_are_shown_and_the_rest_counted() -> None:
    text = str(CheckError(*[mistake(None)] * 7))
    assert text.count("a mistake") == 5
    assert text.endswith("\n\n... and 2 more")
    assert "more" not in str(CheckError(*[mistake(None)] * 5))


def test_colour_changes_no_character() -> None:
    from rich.text import Text

    from pyrelay.diagnostics.colour import render_ansi

    both = [mistake(label("+ x", "wide"), label("漢字", "second")), mistake(None)]
    coloured = render_ansi(both)
    assert "\x1b[" in coloured
    assert Text.from_ansi(coloured).plain == render_text(both)


def test_html_escapes_the_source() -> None:
    file = SourceFile("a.py", "a < b")
    html = RelayError(mistake(label("<", file=file)))._repr_html_()
    assert "&lt;" in html
    assert html.startswith("<pre")


def test_ipython_sees_the_users_frames_and_the_error() -> None:
    lines: list[str] = []
    with contextlib.suppress(RelayError):
        try:
            raise CheckError(mistake(label("dense", "no such operator")))
        except CheckError as error:
            lines = error._render_traceback_()
            raise
    text = "\n".join(lines)
    assert lines[0] == "CheckError"
    assert "test_render.py" in text
    assert "no such operator" in text


def test_rendering_text_needs_no_third_package() -> None:
    import subprocess

    code = (
        "import sys; from pyrelay.diagnostics.diagnostic import *;"
        "str(CheckError(Diagnostic(code='RL999', title='t', primary=None)));"
        "print([m for m in ('rich', 'torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
