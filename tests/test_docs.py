"""What the documentation shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted(p for p in (ROOT / "docs").glob("*.md") if "```python" in p.read_text("utf-8"))
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


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (page.parent / link).exists(), link
