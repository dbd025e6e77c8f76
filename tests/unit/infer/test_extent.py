"""Types that nest too deep, or have too many parts, are refused where they arise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrelay import CheckError
from tests.loading import load_file

CHAINS = {
    "tuples": ("x0 = (y, 1.0)", "x{next} = (x{i}, 1.0)"),
    "lists": ("x0 = [y]", "x{next} = [x{i}]"),
    "cells": ("x0 = relay.ref(y)", "x{next} = relay.ref(x{i})"),
    "functions": ("x0 = lambda: y", "x{next} = lambda: x{i}"),
    "parameters": ("x0 = lambda v: v + y", "x{next} = lambda v: v(x{i})"),
}


def program(folder: Path, lines: list[str]) -> Any:
    text = "from pyrelay import Float, relay\n\n\n@relay\ndef f(y: Float) -> Float:\n"
    path = folder / "written.py"
    path.write_text(text + "".join(f"    {line}\n" for line in [*lines, "return y"]))
    return load_file(path, f"written_{folder.name}").f


def chain(name: str, length: int) -> list[str]:
    first, each = CHAINS[name]
    return [first, *(each.format(i=i, next=i + 1) for i in range(length))]


@pytest.mark.parametrize("name", CHAINS)
def test_a_type_deeper_than_texts_nest_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match=r"RL237.*types nest at most 100 deep"):
        program(tmp_path, chain(name, 3000)).check()


def test_a_type_that_doubles_in_each_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match=r"RL237.*a type has at most 100000 parts"):
        program(tmp_path, ["x = y", *["x = (x, x)"] * 60]).check()


@pytest.mark.parametrize("name", ["tuples", "functions"])
def test_a_type_of_ninety_levels_is_checked_shown_and_run(name: str, tmp_path: Path) -> None:
    found = program(tmp_path, chain(name, 90))
    found.check()
    assert "f" in str(found)
    assert float(found(2.0)) == float(found.interpret(2.0)) == 2.0
