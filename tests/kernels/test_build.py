"""Files of kernels: written whole, found again, never trusted."""

from __future__ import annotations

import errno
import importlib.util
import inspect
import linecache
import marshal
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyrelay.config import options
from pyrelay.files import replace_file
from pyrelay.lower_triton.launching import build
from pyrelay.lower_triton.launching.versions import multiplies_doubles, processors_of

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
    forget()
    with options(cache_dir=tmp_path):
        yield tmp_path / "kernels"
    forget()


def forget() -> None:
    for known in (build._folder, build._own_folder, build.load):
        known.cache_clear()


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
    forget()
    with options(cache_dir=blocked):
        path = build.source_file(TEXT, "twice")
    forget()
    assert path.read_text() == TEXT
    assert tmp_path not in path.parents


def assert_runs(twice: Any) -> None:
    import torch

    x = torch.arange(10.0)
    out = torch.full((10,), torch.nan)
    twice[(3,)](x, out, 10, BLOCK=4)
    assert torch.equal(out, 2 * x)


def test_a_kernel_runs(folder: Path) -> None:
    twice = build.load(TEXT, "twice")
    assert_runs(twice)
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


def test_nothing_but_the_text_is_run_and_its_lines_stay_to_be_seen(folder: Path) -> None:
    path = build.source_file(TEXT, "twice")
    cached = folder / "__pycache__"
    cached.mkdir()
    compiled = compile("raise SystemExit", str(path), "exec")
    status = path.stat()
    head = importlib.util.MAGIC_NUMBER + struct.pack("<iII", 0, int(status.st_mtime), len(TEXT))
    name = Path(importlib.util.cache_from_source(str(path))).name
    (cached / name).write_bytes(head + marshal.dumps(compiled))
    twice = build.load(TEXT, "twice")
    path.unlink()
    linecache.checkcache()
    assert inspect.getsource(twice.fn) == TEXT[TEXT.index("@triton") :]
    assert_runs(twice)


def test_a_full_disk_does_not_matter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build, "replace_file", full)
    twice = build.load(TEXT, "twice")
    assert not [*folder.iterdir()]
    assert inspect.getsource(twice.fn) == TEXT[TEXT.index("@triton") :]
    assert_runs(twice)


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(OSError, match="place"):
        replace_file(place, TEXT)
    assert [*tmp_path.iterdir()] == [place]


def test_what_stands_in_the_place_of_a_file_is_left_alone(folder: Path) -> None:
    path = build.source_file(TEXT, "twice")
    path.unlink()
    path.mkdir()
    assert build.source_file(TEXT, "twice").read_text() == TEXT
    assert path.is_dir()


def test_a_folder_does_not_grow_without_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MOST_FILES", 10)
    for count, left in ((10, 10), (11, 5)):
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            path = folder / f"{number}.py"
            path.write_text("")
            os.utime(path, (number, number))
        build._folder.cache_clear()
        build._folder()
        assert {p.name for p in folder.iterdir()} == {f"{n}.py" for n in range(count - left, count)}


def test_writers_at_the_same_time_give_whole_files(folder: Path) -> None:
    texts = [TEXT + "#" * (1000 * n) for n in range(4)]

    def written(number: int) -> bool:
        text = texts[number % len(texts)]
        path = build.source_file(text, "twice")
        if number % 3 == 0:
            path.write_bytes(b"torn")
        return build.source_file(text, "twice").exists()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(written, range(200)))
    assert [build.source_file(t, "twice").read_text() == t for t in texts] == [True] * len(texts)
    assert not [*folder.glob("*.tmp")]


def test_a_folder_of_the_process_goes_with_it(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    module = "pyrelay.lower_triton.launching.build"
    code = f"from {module} import source_file; print(source_file('a = 1', 'a'))"
    environment = {**os.environ, "PYRELAY_CACHE_DIR": str(blocked)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    path = Path(done.stdout.strip())
    assert path.suffix == ".py"
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("backend", "version", "multiplies"),
    [("hip", "3.6.0", False), ("hip", "3.9.0", True), ("cuda", "3.5.1", True)],
)
def test_blocks_of_float64_are_multiplied_where_triton_can(
    backend: str, version: str, multiplies: bool
) -> None:
    triton = SimpleNamespace(__version__=version)
    assert multiplies_doubles(triton, SimpleNamespace(backend=backend)) is multiplies
