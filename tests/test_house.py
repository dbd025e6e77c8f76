"""The house keeps its own rules: sizes, names, layers, and what importing it costs."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

from pyrelay.analysis.components import components

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("pyrelay/**/*.py"))
TESTS = sorted(p for p in ROOT.glob("tests/**/*.py") if p.relative_to(ROOT).parts[1] != "errors")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "stuff"}


def name_of(path: Path) -> str:
    """Return a file's name inside the project."""
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse(text_of(path))


@cache
def statements(path: Path) -> tuple[ast.stmt, ...]:
    """Return all statements of a file, those inside others too."""
    found: list[ast.stmt] = []
    pending: list[ast.AST] = [tree_of(path)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            found.append(node)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())
    return tuple(found)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return all functions of a file."""
    return (s for s in statements(path) if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef))


def test_a_file_has_at_most_500_lines_and_says_what_it_is() -> None:
    for path in SOURCES:
        assert len(text_of(path).splitlines()) <= 500, name_of(path)
        assert ast.get_docstring(tree_of(path)), f"{name_of(path)} has no docstring"


WITH_CIRCLES = {"ir", "operators", "text"}
"""Packages of which some modules still import each other."""


def test_modules_import_each_other_in_no_circle() -> None:
    graph = grimp.build_graph("pyrelay")  # with the imports inside functions, and for types alone
    imports = {m: sorted(graph.find_modules_directly_imported_by(m)) for m in graph.modules}
    circles = [group for group in components(imports) if len(group) > 1]
    packages = {str(module).split(".")[1] for group in circles for module in group}
    assert packages == WITH_CIRCLES, circles


def test_a_function_has_at_most_60_lines() -> None:
    long = {
        (name_of(path), f.name): f.end_lineno - f.lineno + 1
        for path in SOURCES
        for f in functions(path)
        if f.end_lineno is not None and f.end_lineno - f.lineno >= 60
    }
    assert long == {}


def test_nothing_is_left_for_later() -> None:
    left = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
    found = [(name_of(p), word) for p in SOURCES for word in left.findall(text_of(p))]
    # `relay fix` writes cases for the user to fill in.
    assert set(found) == {("pyrelay/cli/fix.py", "NotImplementedError")}


def test_private_names_stay_in_their_module() -> None:
    taken = [
        (name_of(path), alias.name)
        for path in SOURCES
        for node in statements(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert taken == []


@pytest.mark.parametrize("path", [p for p in SOURCES if ">>> " in text_of(p)], ids=name_of)
def test_the_examples_in_docstrings_are_true(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts).removesuffix(".__init__")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_no_module_is_named_after_nothing() -> None:
    named = [
        name_of(p)
        for p in SOURCES
        if set(p.relative_to(ROOT).with_suffix("").parts) & FORBIDDEN_NAMES
    ]
    assert named == []


def test_the_median_file_stays_small() -> None:
    sizes = sorted(len(text_of(p).splitlines()) for p in SOURCES)
    assert sizes[len(sizes) // 2] <= 200


def test_recursion_limits_are_never_raised_and_threads_never_made_for_depth() -> None:
    for path in SOURCES:
        text = text_of(path)
        assert "setrecursionlimit" not in text, name_of(path)
        assert "stack_size(" not in text, name_of(path)


def test_tests_have_sentences_as_names() -> None:
    short = [
        f"{name_of(path)}: {f.name}"
        for path in TESTS
        for f in functions(path)
        if f.name.startswith("test_") and f.name.count("_") < 3
    ]
    assert short == []


def test_every_dependency_is_pinned_for_the_tests() -> None:
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    groups = PROJECT["dependency-groups"]
    wanted = [*project["dependencies"], *extras["examples"], *extras["benchmarks"]]
    wanted += [d for d in (*groups["test"], *groups["lint"]) if isinstance(d, str)]
    names = {re.split(r"[\[<>=; ]", d)[0].lower() for d in wanted}
    assert names - pinned == set()


def run_python(code: str) -> str:
    """Run code in a fresh interpreter, which keeps bytecode, and give what it prints."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=env
    )
    return done.stdout.strip()


def test_importing_pyrelay_loads_neither_torch_nor_triton() -> None:
    loaded = run_python(
        "import sys, pyrelay; from pyrelay import relay;"
        "print(sorted({'torch', 'triton', 'numpy', 'rich', 'libcst', 'lark'} & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_importing_pyrelay_is_little_work() -> None:
    # 100,000 calls are a tenth of a second; benchmarks/import_time.py has the times.
    code = "from tests.steps import calls_of; print(calls_of(lambda: __import__('pyrelay')))"
    assert int(run_python(code)) < 150_000


CLOCKS = {"perf_counter", "process_time", "monotonic", "time.time", "timeit"}


def test_lazy_modules_are_those_that_type_checkers_see() -> None:
    """Each `LazyModule` has the name of the module that the block for type checkers imports."""
    found = 0
    for path in SOURCES:
        if "LazyModule(" not in text_of(path) or path.stem == "lazy":
            continue
        for block in (n for n in tree_of(path).body if isinstance(n, ast.If) and n.orelse):
            package = ".".join(path.relative_to(ROOT).parts[:-1])
            seen = {
                alias.asname or alias.name: _imported(package, node, alias.name)
                for node in block.body
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for node in block.orelse:
                match node:
                    case ast.Assign([ast.Name(name)], ast.Call(ast.Name("LazyModule"), [module])):
                        assert seen[name] == ast.literal_eval(module), (path, name)
                        importlib.import_module(seen[name])
                        found += 1
                    case _:
                        pass
    assert found > 15


def _imported(package: str, node: ast.ImportFrom, name: str) -> str:
    levels = package.split(".")
    base = levels[: len(levels) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else []), name])


def test_no_test_reads_a_clock() -> None:
    # A busy machine would fail it. Work is counted (tests/steps.py); times are for benchmarks.
    tests = [p for p in (ROOT / "tests").rglob("test_*.py") if p.name != "test_house.py"]
    reading = {p.name for p in tests for clock in CLOCKS if clock in text_of(p)}
    assert reading - MEASURING == set()


MEASURING = {"test_timing.py"}
"""The tests of code that reads clocks itself, with clocks that they make up."""
