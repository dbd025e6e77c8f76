"""Cells in fields of data: made, read, written, matched, in programs, in and out of them."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
import torch

from pyrelay import CheckError, relay
from tests.features.refs import cell_programs as programs

NAMES = (
    "constructed",
    "matched",
    "counted",
    "closed_over",
    "boxed_data",
    "in_a_list",
    "shared",
    "recursive",
    "swapped",
    "replaced_cell",
)
"""The programs of one number."""


def plain() -> types.ModuleType:
    """Return the same programs as Python runs them."""
    text = Path(programs.__file__).read_text(encoding="utf-8").replace("@relay\n", "")
    module = types.ModuleType("plain_cell_programs")
    sys.modules[module.__name__] = module
    exec(compile(re.sub(r"\n\w+ = relay\(\w+\)\n", "\n", text), "plain", "exec"), vars(module))
    return module


PLAIN = plain()


@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_what_python_gives(name: str) -> None:
    function, python = getattr(programs, name), getattr(PLAIN, name)
    for x in (2, 5) if name == "counted" else (2.0, -1.5):
        assert float(function(x)) == pytest.approx(float(python(x)))
        assert float(function.interpret(x)) == pytest.approx(float(python(x)))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "counted"])
def test_gradients_flow_through_cells_in_data(name: str) -> None:
    function, python = getattr(programs, name), getattr(PLAIN, name)
    x, step = 1.7, 1e-6
    expected = (python(x + step) - python(x - step)) / (2 * step)
    second = (python(x + 1e-4) - 2 * python(x) + python(x - 1e-4)) / 1e-8
    assert float(relay.grad(function)(x)) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    twice = relay.grad(relay.grad(function))
    assert float(twice(x)) == pytest.approx(second, rel=1e-3, abs=1e-3)
    leaf = torch.tensor(x, requires_grad=True)
    (joined,) = torch.autograd.grad(function(leaf), leaf)
    assert float(joined) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_script_sees_what_a_program_writes() -> None:
    box, counter = programs.Box(relay.ref(torch.tensor(2.0))), programs.Counter(relay.ref(1), 4)
    assert float(programs.takes(box, counter, 3.0)) == 2.0
    assert float(programs.takes.interpret(box, counter, 3.0)) == 6.0
    assert float(box.cell.value) == 18.0
    assert int(counter.count.value) == 9


def test_a_program_gives_cells_that_it_takes_again() -> None:
    switch, box = programs.gives(1.5)
    assert float(switch.level.value) == 3.0
    assert int(box.cell.value) == 3
    switch.level.value = 5.0
    assert float(programs.raised(switch, 1.0)) == 9.0
    assert float(switch.level.value) == 6.0
    assert float(programs.tally([switch, programs.Off(), switch])) == (7.0 + 8.0) * 1.5


def test_what_a_cell_held_before_is_a_constant() -> None:
    box, counter = programs.Box(relay.ref(2.0)), programs.Counter(relay.ref(1), 4)
    value, slope = relay.value_and_grad(programs.takes, wrt="x")(box, counter, 3.0)
    assert (float(value), float(slope)) == (2.0, 0.0)
    assert float(box.cell.value) == 6.0


def test_data_with_cells_is_not_compared() -> None:
    with pytest.raises(CheckError) as caught:
        compared.check()
    assert caught.value.codes == ("RL201",)


@relay
def compared(a: programs.Box[programs.Int]):
    return relay.equal(a, a)
