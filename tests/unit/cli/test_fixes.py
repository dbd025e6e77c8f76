"""`check --fix` on whole files: what it makes of them, and that this is right."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pyrelay.cli.check import check
from pyrelay.cli.load import forget, functions, load

FOLDER = Path(__file__).parent / "fixes"
BEFORE = sorted(FOLDER.glob("*.before.py"))


@pytest.mark.parametrize("before", BEFORE, ids=lambda p: p.name.split(".")[0])
def test_a_file_is_fixed_and_then_right(
    before: Path, tmp_path: Path, update_golden: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    name = before.name.split(".")[0]
    file = tmp_path / f"{name}_fixed.py"
    shutil.copy(before, file)
    assert check(file, as_json=False, fix=False) == 1
    capsys.readouterr()
    assert check(file, as_json=False, fix=True) == 0
    assert " 0 errors, 0 warnings, " in capsys.readouterr().out
    after = before.with_name(f"{name}.after.py")
    if update_golden:
        shutil.copy(file, after)
    assert file.read_text() == after.read_text()
    again = tmp_path / f"{name}_again.py"
    shutil.copy(file, again)
    checked = functions(load(again))
    assert checked
    for function in checked.values():
        assert not function.check().warnings


UNFOUNDED = """
from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


@relay
def total(tree: Tree):
    match tree:
        case Node(left, right):
            return total(left) + total(right)


@relay
def depth(tree: Tree) -> int:
    match tree:
        case Node(left, right):
            return 1 + max(depth(left), depth(right))
"""


def test_a_case_is_not_added_where_the_type_of_the_result_would_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trees.py"
    file.write_text(UNFOUNDED)
    assert check(file, as_json=False, fix=True) == 1
    assert (
        file.read_text()
        == UNFOUNDED
        + '        case Leaf(value):\n            raise NotImplementedError("Leaf(value)")\n'
    )
    told = capsys.readouterr().out
    assert "not fixed: with a case that raises, the result type of `total`" in told
    assert told.endswith("2 functions checked, 1 error, 0 warnings, 1 fixed\n")


def test_a_file_that_changed_within_a_second_is_imported_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "quick.py"
    times = (1_700_000_000, 1_700_000_000)
    values: list[int] = []
    for text in ("VALUE = 1\n", "VALUE = 2\n"):
        file.write_text(text)
        os.utime(file, times)  # the size is the same, too
        forget(file)
        values.append(load(file).VALUE)
    assert values == [1, 2]
