"""What the documentation shows is what happens."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from pyrelay.config import Options
from tests.golden import Golden
from tests.pages import c_functions_page, errors_page, operators_page, passes_page, stages_table
from tests.picture import architecture_picture
from tests.tolerances import table
from tests.users import as_a_user

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PACKAGES = sorted((ROOT / "pyrelay").rglob("README.md"))
CODE_PAGES = [
    *PACKAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "decisions.md",
    ROOT / "docs" / "glossary.md",
]
"""The pages about the code, which mention its files."""
DOCS = [page for page in PAGES if "```python" in page.read_text("utf-8")]
NOTICE = re.compile(r"(C is being built for .*|`.*` is being compiled)\n")
"""What is logged where a machine is slow."""

BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("page", DOCS, ids=lambda p: p.name)
def test_the_programs_of_a_page_run_in_order_and_print_what_stands_below_them(
    page: Path, tmp_path: Path
) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    (tmp_path / "program.py").write_text("\n".join(p for p, _ in blocks), encoding="utf-8")
    done = as_a_user(["program.py"], tmp_path)
    assert NOTICE.sub("", done.stderr) == ""
    assert done.stdout == "".join(output for _, output in blocks)


def named(page: Path) -> str:
    """Return the name of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", sorted({*PAGES, *CODE_PAGES}), ids=named)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    for link, heading in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", text):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not heading or heading in headings(target), heading


def headings(page: Path) -> list[str]:
    """Return the anchors of the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found]


@pytest.mark.parametrize("page", CODE_PAGES, ids=named)
def test_files_that_a_page_mentions_exist(page: Path) -> None:
    """A file is mentioned from the folder of the page, from the package or from the root."""
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`([\w./-]+(?:\.py|\.relay|/))`", text):
        assert any((start / path).exists() for start in (page.parent, ROOT / "pyrelay", ROOT)), path


def test_the_reference_is_what_the_declarations_say(*, update_golden: bool) -> None:
    reference = Golden(ROOT / "docs" / "reference", update=update_golden)
    reference("operators.md", operators_page())
    reference("errors.md", errors_page())
    reference("passes.md", passes_page())
    reference("c-functions.md", c_functions_page())
    Golden(ROOT / "docs", update=update_golden)("architecture.svg", architecture_picture())


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


def test_every_package_has_a_place_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for page in PACKAGES:
        assert f"](../{page.relative_to(ROOT).as_posix()})" in text


def test_the_architecture_has_the_table_of_stages() -> None:
    assert stages_table() in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_of_the_runtime_has_the_tolerances_of_lowerings() -> None:
    assert table() in (ROOT / "pyrelay" / "runtime" / "README.md").read_text(encoding="utf-8")
