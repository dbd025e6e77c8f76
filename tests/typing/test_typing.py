"""Stock type checkers, with no plugin and no setting, accept users' files and find mistakes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "lenet"
RIGHT = (
    "definitions.py",
    "uses.py",
    "records.py",
    "lists.py",
    "results.py",
    "optionals.py",
    "sequences.py",
)
SCRIPTS = ("lenet.py", "train.py", "paper.py", "torch_lenet.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with users' files and nobody's settings."""
    for source in (*HERE.glob("*.py"), *EXAMPLE.glob("*.py")):
        shutil.copy(source, tmp_path)
    return tmp_path


def pyright(folder: Path, *files: str) -> set[tuple[str, int]]:
    """Return the lines at which pyright finds something wrong."""
    done = run(folder, "pyright", "--pythonpath", sys.executable, "--outputjson", *files)
    return {
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1)
        for d in json.loads(done)["generalDiagnostics"]
        if d["severity"] == "error"
    }


def mypy(folder: Path, *files: str) -> set[tuple[str, int]]:
    """Return the lines at which mypy finds something wrong."""
    # scikit-learn, which the example reads its digits from, comes without types
    done = run(folder, "mypy", "--disable-error-code=import-untyped", *files)
    assert "rrors in" in done or "rror in" in done or "no issues" in done, done
    found = re.findall(r"^(\w+\.py):(\d+): error", done, re.MULTILINE)
    return {(file, int(line)) for file, line in found}


def run(folder: Path, tool: str, *arguments: str) -> str:
    """Run a tool in a folder and give what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    return done.stdout


def marked(file: str) -> set[tuple[str, int]]:
    """Return the lines of a file that are marked as wrong."""
    lines = (HERE / file).read_text().splitlines()
    return {(file, n) for n, line in enumerate(lines, 1) if line.endswith("# wrong")}


def test_pyright_accepts_users_files_and_the_examples(folder: Path) -> None:
    assert pyright(folder, *RIGHT, *SCRIPTS) == set()


def test_pyright_finds_the_marked_mistakes_and_no_others(folder: Path) -> None:
    assert pyright(folder, "mistakes.py") == marked("mistakes.py")


@pytest.mark.slow
def test_mypy_accepts_users_files_and_the_examples(folder: Path) -> None:
    assert mypy(folder, *RIGHT, *SCRIPTS) == set()


@pytest.mark.slow
def test_mypy_finds_the_marked_mistakes_and_no_others(folder: Path) -> None:
    assert mypy(folder, "mistakes.py") == marked("mistakes.py")


@pytest.mark.parametrize("checker", [pyright, mypy], ids=["pyright", "mypy"])
def test_the_example_of_recursive_models_is_accepted(
    checker: Callable[..., set[tuple[str, int]]], tmp_path: Path
) -> None:
    sources = sorted((EXAMPLE.parent / "tree_lstm").glob("*.py"))
    for source in sources:
        shutil.copy(source, tmp_path)
    assert checker(tmp_path, *(s.name for s in sources)) == set()
