"""What the documentation shows is what happens."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyrelay.config import Options
from tests.golden import Golden
from tests.pages import errors_page, operators_page, passes_page
from tests.tolerances import table

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCS = [page for page in PAGES if "```python" in page.read_text("utf-8")]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("page", DOCS, ids=lambda p: p.name)
def test_the_programs_of_a_page_run_in_order_and_print_what_stands_below_them(
    page: Path, tmp_path: Path
) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    (tmp_path / "program.py").write_text("\n".join(p for p, _ in blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout == "".join(output for _, output in blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (page.parent / link).exists(), link


def test_the_reference_is_what_the_declarations_say(*, update_golden: bool) -> None:
    reference = Golden(ROOT / "docs" / "reference", update=update_golden)
    reference("operators.md", operators_page())
    reference("errors.md", errors_page())
    reference("passes.md", passes_page())


def test_every_option_is_told() -> None:
    told = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    for option in dataclasses.fields(Options):
        assert f"| `PYRELAY_{option.name.upper()}` |" in told
        assert f"| {option.metadata['doc']} |" in told


def test_every_page_can_be_found() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "README.md" or f"]({name})" in index


def test_the_page_about_the_inside_shows_the_tolerances_of_lowerings() -> None:
    assert table() in (ROOT / "docs" / "inside.md").read_text(encoding="utf-8")
