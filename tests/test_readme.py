"""What the README shows is what happens."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from examples.lenet import lenet
from tests.users import as_a_user

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def ran(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program, encoding="utf-8")
    return as_a_user(["program.py"], folder)


def test_the_program_prints_what_stands_below_it(tmp_path: Path) -> None:
    (output,) = re.findall(r"```\n(tensor.*?)```", README, re.DOTALL)
    done = ran(PROGRAM, tmp_path)
    assert done.stdout == output, done.stderr


def test_the_program_without_its_first_case_is_refused_as_shown(tmp_path: Path) -> None:
    (rendered,) = re.findall(r"```\n(error.*?)```", README, re.DOTALL)
    first_case = re.compile(r" +case Leaf.*\n.*\n")
    assert first_case.search(PROGRAM)
    done = ran(first_case.sub("", PROGRAM), tmp_path)
    assert done.stderr.endswith(rendered)


def test_the_kernel_of_the_page_on_lowerings_is_one_of_lenets() -> None:
    page = (ROOT / "docs" / "lowerings.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert shown in lenet.train.show("triton")


def test_the_figures_are_those_that_were_measured() -> None:
    results = ROOT / "benchmarks" / "results"
    cases = json.loads((results / "performance.json").read_text())["cases"]
    steps = [cases[f"LeNet step, batch {batch}"] for batch in (1, 32)]
    ours, theirs = (
        " / ".join(f"{step[way]['ratio']:.1f}" for step in steps)
        for way in ("pyrelay", "torch.compile")
    )
    text = " ".join(README.split())
    assert f"batch 1 / 32 is {ours} times as fast" in text
    assert f"torch.compile's {theirs} times" in text
    for way, found in json.loads((results / "tree_shapes.json").read_text())["ways"].items():
        (row,) = re.findall(rf"^\| {re.escape(way)}\b.*$", README, re.MULTILINE)
        shapes, compilations, seconds = re.findall(r"[\d.]+(?= \|)", row.replace("*", ""))
        assert (int(shapes), int(compilations)) == (found["shapes"], found["compilations"])
        assert float(seconds) == round(found["total"], len(seconds.partition(".")[2]))


def test_the_readme_stays_short_and_names_the_commands() -> None:
    assert len(README.splitlines()) <= 91
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{command}:" in makefile
    for link in re.findall(r"\]\(([\w./-]+)\)", README):
        assert (ROOT / link).exists()
