"""`match` and tests of classes mean what they mean in Python: each program gives the same numbers,
whether Python runs its text, the compiled host or the reference evaluator."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrelay import RelayWarning, options
from tests.features.language import match_programs

TEXT = Path(match_programs.__file__).read_text(encoding="utf-8")
NAMES = [name for name in vars(match_programs) if name.startswith("run_")]
NUMBERS = [(n, x) for n in range(-1, 7) for x in (-2.5, 0.0, 1.0, 1.5, 3.0)]


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    """The programs as Python runs them."""
    module = ModuleType("plain_match_programs")
    sys.modules[module.__name__] = module
    text = TEXT.replace("from pyrelay import relay\n", "def relay(f): return f\n")
    exec(compile(text, "plain_match_programs", "exec"), vars(module))
    return module


@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_what_python_gives(name: str, plain: ModuleType) -> None:
    compiled, python = getattr(match_programs, name), getattr(plain, name)
    with options(verify=True):
        assert compiled.check().warnings == ()
        for n, x in NUMBERS:
            expected = pytest.approx(python(n, x), rel=1e-5)
            assert compiled(n, x) == expected, (n, x)
    for n, x in NUMBERS[::3]:
        assert compiled.interpret(n, x) == pytest.approx(python(n, x), rel=1e-5), (n, x)


def chain(module: ModuleType, *heads: float) -> Any:
    """Return a chain of links of a module's own class."""
    found = None
    for head in heads:
        found = module.Link(head, found)
    return found


@pytest.mark.parametrize("name", [n for n in vars(match_programs) if n.startswith("link_")])
def test_a_program_of_an_optional_gives_what_python_gives(name: str, plain: ModuleType) -> None:
    compiled, python = getattr(match_programs, name), getattr(plain, name)
    for heads in ((), (1.0,), (2.0, 3.0), (-1.0, 2.0, 0.5), (1.0, -2.0, 3.0), (4.0, 3.0, 2.0, 1.0)):
        expected = pytest.approx(python(chain(plain, *heads)), rel=1e-5)
        with options(verify=True):
            assert compiled(chain(match_programs, *heads)) == expected, heads


def test_a_case_never_reached_warns_once_at_its_line() -> None:
    function = match_programs.with_a_case_never_reached
    (found,) = function.check().warnings
    assert found.primary is not None
    assert found.primary.span.text == "Leaf(1.0)"
    assert "never reached" in str(function.check())
    assert str(match_programs.area.check()) == "no mistakes"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        function(match_programs.Leaf(2.0))
        function(match_programs.Leaf(2.0))
    (warning,) = caught
    assert warning.category is RelayWarning
    assert warning.filename == match_programs.__file__
    assert warning.lineno == found.primary.span.line
