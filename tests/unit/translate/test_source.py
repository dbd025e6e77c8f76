"""Finding a function's text: by its place in the whole file, and only if it is what runs."""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.translate.source.source import load_source

PROGRAM = '''
def decorated(f):
    return f


@decorated
@decorated
def scaled(x):
    """A docstring
at the left edge."""
# a comment at the left edge
    return x * 2.0


def scaled_twice(x): return scaled(scaled(x)); y = lambda: scaled(1)


def outer():
    def scaled(x):
        return x * 3.0
    return scaled
'''


def load(file: Path, text: str) -> dict[str, Any]:
    file.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, str(file), "exec"), names)
    return names


@pytest.fixture
def program(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    file = tmp_path / "program.py"
    return file, load(file, PROGRAM)


def test_decorators_docstrings_and_comments_do_not_matter(
    program: tuple[Path, dict[str, Any]],
) -> None:
    file, names = program
    source = load_source(names["scaled"])
    assert source.node.name == "scaled"
    assert source.file.name == str(file)
    assert source.span(source.node.body[-1]).text == "return x * 2.0"
    assert source.head.text == "def scaled"


def test_functions_of_one_name_are_told_apart_by_their_place(
    program: tuple[Path, dict[str, Any]],
) -> None:
    source = load_source(program[1]["outer"]())
    assert source.span(source.node.body[-1]).text == "return x * 3.0"


def test_columns_are_characters(tmp_path: Path) -> None:
    text = "def f(α):\n    return 'é' if α else α + α\n"
    source = load_source(load(tmp_path / "greek.py", text)["f"])
    returned = source.node.body[0]
    assert source.span(returned).text == "return 'é' if α else α + α"


CHANGES: dict[str, Callable[[str], str]] = {
    "a number": lambda t: t.replace("2.0", "4.0"),
    "an operator": lambda t: t.replace("* 2.0", "+ 2.0"),
    "a line above": lambda t: "\n" + t,
    "a name": lambda t: t.replace('def scaled(x):\n    """', 'def other(x):\n    """'),
    "no syntax": lambda t: t + "def (",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_edited_file_is_an_error(
    program: tuple[Path, dict[str, Any]], change: Callable[[str], str]
) -> None:
    file, names = program
    file.write_text(change(PROGRAM) + "#" * 50, encoding="utf-8")
    with pytest.raises(CheckError) as caught:
        load_source(names["scaled"])
    assert caught.value.codes == ("RL109",)


def test_an_edit_elsewhere_on_later_lines_is_no_matter(
    program: tuple[Path, dict[str, Any]],
) -> None:
    file, names = program
    file.write_text(PROGRAM + "\nmore = 1\n", encoding="utf-8")
    assert load_source(names["scaled"]).node.name == "scaled"


CELL = """from __future__ import annotations

import math
from math import floor as down


def decorated(f): return f


if True:
    @decorated
    def rounded(x):
        def inner(y: int) -> int:
            return math.floor(y) + down(y)
        return inner(math.ceil(x))
"""


def test_statements_of_a_cell_are_compiled_one_by_one(tmp_path: Path) -> None:
    """As IPython does, which compiles calls of what the cell imports in another way."""
    file = tmp_path / "cell.py"
    file.write_text(CELL, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "cell"}
    flags = __future__.annotations.compiler_flag
    for statement in ast.parse(CELL).body:
        exec(compile(ast.Module([statement], []), str(file), "exec", flags), names)
    assert load_source(names["rounded"]).node.name == "rounded"
    file.write_text(CELL.replace("ceil", "floor"), encoding="utf-8")
    linecache.clearcache()
    with pytest.raises(CheckError, match="RL109"):
        load_source(names["rounded"])


def test_text_without_a_file_is_an_error_with_a_way_out() -> None:
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x\n", "<nowhere>", "exec"), names)
    with pytest.raises(CheckError) as caught:
        load_source(names["f"])
    assert caught.value.codes == ("RL110",)
    assert caught.value.diagnostics[0].help is not None


def test_generated_text_in_linecache_is_found() -> None:
    text = "def f(x):\n    return x\n"
    linecache.cache["<made>"] = (len(text), None, text.splitlines(keepends=True), "<made>")
    names: dict[str, Any] = {}
    exec(compile(text, "<made>", "exec"), names)
    assert load_source(names["f"]).node.name == "f"


def test_a_lambda_is_no_definition() -> None:
    function = lambda x: x  # noqa: E731
    assert isinstance(function, FunctionType)
    with pytest.raises(CheckError) as caught:
        load_source(function)
    assert caught.value.codes == ("RL110",)


def test_asserts_that_pytest_rewrites_are_still_this_function() -> None:
    def checked(x: float) -> float:
        assert x > 0.0, "positive"
        return x

    assert load_source(checked).node.name == "checked"


@pytest.mark.parametrize("found", [3, len, int], ids=["number", "builtin", "class"])
def test_what_is_no_function_is_told_by_its_type(found: Any) -> None:
    with pytest.raises(CheckError, match=f"it is of type {type(found).__name__}, not a function"):
        load_source(found)
