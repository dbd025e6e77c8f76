"""Files of kernels: written whole, found again, never trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyrelay.config import options
from pyrelay.lower_triton import build
from pyrelay.lower_triton.versions import processors_of

TEXT = """\
import triton
import triton.language as tl


@triton.jit
def twice(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + x, mask=i < n)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    build._folder.cache_clear()
    build.load.cache_clear()
    with options(cache_dir=tmp_path):
        yield tmp_path / "kernels"
    build._folder.cache_clear()
    build.load.cache_clear()


def test_a_kernel_is_written_once_under_its_content(folder: Path) -> None:
    path = build.source_file(TEXT, "twice")
    before = path.stat().st_mtime_ns
    assert build.source_file(TEXT, "twice") == path
    assert path.stat().st_mtime_ns == before
    assert path.read_text() == TEXT
    assert build.source_file(TEXT + "\n", "twice") != path
    assert sorted(p.suffix for p in folder.iterdir()) == [".py", ".py"]


@pytest.mark.parametrize("damage", [b"", TEXT[:40].encode(), b"\xff\xfe", b"import os\n"])
def test_a_damaged_or_foreign_file_is_written_anew(folder: Path, damage: bytes) -> None:
    path = build.source_file(TEXT, "twice")
    path.write_bytes(damage)
    assert build.source_file(TEXT, "twice").read_text() == TEXT


def test_a_folder_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    build._folder.cache_clear()
    with options(cache_dir=blocked):
        path = build.source_file(TEXT, "twice")
    build._folder.cache_clear()
    assert path.read_text() == TEXT
    assert tmp_path not in path.parents


def test_a_kernel_runs(folder: Path) -> None:
    import torch

    twice = build.load(TEXT, "twice")
    x = torch.arange(10.0)
    out = torch.full((10,), torch.nan)
    twice[(3,)](x, out, 10, BLOCK=4)
    assert torch.equal(out, 2 * x)
    assert build.load(TEXT, "twice") is twice


@pytest.mark.parametrize(
    ("backend", "arch", "version", "count"),
    [
        ("cuda", 90, "3.9.0", 8),
        ("cuda", 100, "3.10.1", 8),
        ("cuda", 80, "3.9.0", 1),
        ("cuda", 120, "3.9.0", 1),
        ("hip", "gfx942", "3.9.0", 1),
        ("cuda", 90, "3.8.0", 1),
    ],
)
def test_processors_share_programs_in_clusters_that_triton_reduces_across(
    backend: str, arch: int | str, version: str, count: int
) -> None:
    triton = SimpleNamespace(__version__=version)
    assert processors_of(triton, SimpleNamespace(backend=backend, arch=arch)) == count
