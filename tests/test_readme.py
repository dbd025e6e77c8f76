"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.lenet import lenet

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```\n+```\n(.*?)```", README, re.DOTALL)
"""Each program with the output that stands below it."""


def test_the_readme_shows_a_program_that_runs_and_one_that_does_not() -> None:
    shown = [output for _, output in PROGRAMS]
    assert len(shown) == 2
    assert [output.startswith("error[RL") for output in shown] == [False, True]


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_a_program_of_the_readme_prints_what_stands_below_it(
    program: str, output: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    if "error[RL" in done.stderr:
        assert done.stderr[done.stderr.index("error[RL") :] == output
    else:
        assert done.stdout == output, done.stderr


def test_the_kernel_of_the_readme_is_one_of_lenets() -> None:
    (shown,) = re.findall(r"```py\n(.*?)```", README, re.DOTALL)
    assert shown in lenet.train.show("triton")


def test_the_readme_stays_short_and_names_the_commands() -> None:
    assert len(README.splitlines()) <= 110
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{command}:" in makefile
    for link in re.findall(r"\]\(([\w./-]+)\)", README):
        assert (ROOT / link).exists()
