"""The TreeLSTM example: its data, and its script."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "tree_lstm"
LEAVES = {"True", "False"}


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the example's data."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("trees")


def test_conditions_are_different_balanced_and_the_same_for_a_seed(trees: Any) -> None:
    found = trees.conditions(100, seed=3)
    assert len({c.text for c in found}) == 100
    assert sum(c.holds for c in found) == 50
    assert all(bool(eval(c.text)) is bool(c.holds) for c in found)
    assert [c.text for c in trees.conditions(100, seed=3)] == [c.text for c in found]


def test_a_tree_has_the_words_of_its_condition(trees: Any) -> None:
    for condition in trees.conditions(50, seed=1):
        words = [trees.WORDS[w] for w in trees.words_of(condition.tree)]
        text = re.findall(r"\w+|==", condition.text)
        assert sorted(words) == sorted(text)
        assert [w for w in words if w in LEAVES] == [w for w in text if w in LEAVES]


def test_the_structure_tells_what_the_words_do_not(trees: Any) -> None:
    whole, part = trees.tree_of("not (True and False)"), trees.tree_of("(not True) and False")
    assert sorted(trees.words_of(whole)) == sorted(trees.words_of(part))
    assert whole != part


@pytest.mark.slow
def test_the_script_trains_a_model_that_is_better_than_its_leaves(tmp_path: Path) -> None:
    command = [sys.executable, FOLDER / "train.py", "--out", tmp_path]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=True, env=os.environ
    )
    found = [float(n) for n in re.findall(r"([\d.]+)%", done.stdout)]
    assert len(found) == 2, done.stdout
    assert found[0] > 90
    assert found[0] > found[1] + 15
    assert (tmp_path / "training.png").stat().st_size > 5000
