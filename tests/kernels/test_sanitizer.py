"""NVIDIA's compute-sanitizer over the kernels: accesses out of bounds, and races of threads.

It runs the tests of kernels in a process of its own, in which every tensor is an allocation of the
driver without guards, so that the first byte beside it is not the program's.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.running import IS_INTERPRETED

ROOT = Path(__file__).parents[2]
FILES = ("operators", "pointwise", "rows", "online", "contraction", "scatter", "updates")
USUAL = Path("/usr/local/cuda/bin")


def sanitizer() -> str | None:
    """Return the path of the program, None where it is not installed."""
    return shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}{os.pathsep}{USUAL}")


def checked(program: str, tool: str, *chosen: str) -> str:
    """Return what the tests say, run under a tool that looks at the device. Fails if it finds
    something, or if no test ran."""
    mark = "not gpu and not slow" if IS_INTERPRETED else "gpu"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", mark]
    done = subprocess.run(
        [program, "--tool", tool, "--error-exitcode", "9", *tests, *chosen],
        cwd=ROOT,
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "KERNELS_GUARD": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d+ passed", done.stdout), done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(IS_INTERPRETED, reason="looks at a GPU")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
@pytest.mark.parametrize("name", FILES)
def test_the_sanitizer_finds_nothing(name: str, tool: str) -> None:
    program = sanitizer()
    if program is None:
        pytest.skip("compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin")
    checked(program, tool, f"tests/kernels/test_{name}.py")


@pytest.mark.skipif(not IS_INTERPRETED, reason="rehearses without a GPU")
def test_the_sanitizers_status_counts(tmp_path: Path) -> None:
    program = tmp_path / "sanitizer"
    program.write_text('#!/bin/sh\nshift 4\n"$@" && exit ${FOUND:-0}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    one = "tests/kernels/test_updates.py::test_all_parameters_are_updated_in_one_launch"
    assert "1 passed" in checked(str(program), "memcheck", one)
    with pytest.raises(AssertionError):
        checked("false", "memcheck", one)
