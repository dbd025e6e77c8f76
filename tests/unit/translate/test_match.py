"""`match` and tests of classes mean what they mean in Python: each program gives the same numbers,
whether Python runs its text, the compiled host or the reference evaluator."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from pyrelay import options
from tests.unit.translate import match_programs

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
