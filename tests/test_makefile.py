"""`make test` runs every stage, and says at the end which failed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUB = '#!/bin/sh\necho ran $0 $*\ncase "$*" in *--check*|*gpu?tests/property*) exit 3;; esac\n'

pytestmark = [
    pytest.mark.host("runs no program"),
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the Makefile and an environment whose tools only print."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("constraints.txt", "pyproject.toml", ".venv/.torch", ".venv/.dev"):
        (tmp_path / name).touch()
    for name in ("ruff", "pyright", "lint-imports", "python", "pip"):
        tool = tmp_path / ".venv" / "bin" / name
        tool.write_text(STUB)
        tool.chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_later_stages_run_after_one_that_fails(folder: Path) -> None:
    done = make(folder, "test", "STAGES=ruff format pyright unit property kernels")
    assert done.returncode != 0
    assert done.stdout.endswith("== failed: format property\n")
    assert "tests/kernels" in done.stdout


def test_nothing_fails_where_all_stages_pass(folder: Path) -> None:
    done = make(folder, "test", "STAGES=ruff pyright imports")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("== passed: ruff pyright imports\n")


@pytest.mark.parametrize("half", ["gpu tests/property/test_", "gpu tests/property --ignore"])
def test_either_half_of_the_random_programs_may_fail(folder: Path, half: str) -> None:
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\necho ran $*\ncase "$*" in *"{half}"*) exit 1;; esac\n')
    done = make(folder, "property")
    assert done.returncode != 0
    assert done.stdout.count("ran") == len(("first", "second"))


def test_an_empty_index_means_the_one_that_pip_is_set_up_with(folder: Path) -> None:
    (folder / ".venv" / ".torch").unlink()
    assert "--extra-index-url" in make(folder, "-n", ".venv/.torch").stdout
    assert "index" not in make(folder, "-n", ".venv/.torch", "TORCH_INDEX=").stdout
