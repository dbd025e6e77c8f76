"""The same program gives the same text at every stage, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count, zip_longest
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pyrelay.text.printer import to_text
from tests.property.test_gradients import FIRST
from tests.scale import texts
from tests.strategies import Program, programs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with random programs, each with a function that differentiates it."""
    made = tmp_path_factory.mktemp("programs")
    numbers = count()

    @settings(
        max_examples=12,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(6, differentiable=True))
    def write(program: Program) -> None:
        bare = to_text(program.module).replace(", typed]", "]", 1)
        (made / f"{next(numbers):02}.relay").write_text(bare + FIRST, encoding="utf-8")

    write()
    return made


def printed(seed: str, folder: Path) -> subprocess.Popen[str]:
    """Start a process, with its own seed of hashes, that prints everything."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.scale.texts", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def test_processes_with_different_hash_seeds_give_identical_text(folder: Path) -> None:
    processes = [printed(seed, folder) for seed in ("0", "1", "random")]
    here = "".join(f"{text}\n" for text in (*texts.of_functions(), *texts.of_programs(folder)))
    said = [process.communicate() for process in processes]
    for process, (text, errors) in zip(processes, said, strict=True):
        assert process.returncode == 0, errors
        pairs = zip_longest(text.splitlines(), here.splitlines())
        assert next(((new, old) for new, old in pairs if new != old), None) is None
        assert text == here
    for part in ("def @train", "def loop_in_recursion", "recursion_bwd", "def @derived"):
        assert part in here


def test_compiling_again_gives_identical_text(folder: Path) -> None:
    first, second = (list(texts.of_programs(folder)) for _ in range(2))
    assert first == second
    assert len(first) >= 5 * 10
