"""A cache on disk returns what was kept under a key, or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import pytest

from pyrelay import disk_cache
from pyrelay.config import options
from pyrelay.disk_cache import DiskCache, Usage


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a cache that is empty, in effect for a test."""
    with options(cache_dir=tmp_path, cache=True):
        yield tmp_path / "tried"


def files(folder: Path) -> list[Path]:
    """Return the files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_content_is_found_again_under_its_key(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    assert cache.find("key") is None
    cache.keep("key", b"one\ntwo\x00")
    assert cache.find("key") == b"one\ntwo\x00"
    assert cache.find("another") is None
    cache.keep("key", b"")
    assert cache.find("key") == b""
    assert len(files(folder)) == 1


def test_every_cut_and_every_change_of_a_file_is_noticed(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    (file,) = files(folder)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert cache.find("key") is None
        changed = bytes([whole[length] ^ 1])
        file.write_bytes(whole[:length] + changed + whole[length + 1 :])
        assert cache.find("key") is None
    file.write_bytes(whole + b"\n")
    assert cache.find("key") is None
    file.write_bytes(whole)
    assert cache.find("key") == b"content"


def test_the_file_of_another_key_is_not_believed(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    (file,) = files(folder)
    cache.keep("other", b"content")
    (other,) = set(files(folder)) - {file}
    other.write_bytes(file.read_bytes())
    assert cache.find("other") is None


def test_a_folder_in_the_place_of_a_file_is_done_without(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    (file,) = files(folder)
    file.unlink()
    file.mkdir()
    assert cache.find("key") is None
    cache.keep("key", b"content")
    assert cache.find("key") is None
    assert files(folder) == []


def test_nothing_is_kept_where_the_cache_is_off(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    with options(cache=False):
        assert cache.find("key") is None
        cache.keep("other", b"content")
    assert cache.find("key") == b"content"
    assert cache.find("other") is None


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with options(cache_dir=tmp_path / "file"):
        cache = DiskCache("tried", limit=1000)
        cache.keep("key", b"content")
        assert cache.find("key") is None
        assert cache.usage() == Usage(0, 0)
        cache.clear()


def test_a_full_disk_is_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    cache = DiskCache("tried", limit=1000)
    monkeypatch.setattr(disk_cache, "replace_file", full)
    cache.keep("key", b"content")
    assert cache.find("key") is None
    assert files(folder) == []


def test_a_folder_that_can_only_be_read_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(Path, name, refused)
    monkeypatch.setattr(os, "utime", refused)
    assert cache.find("key") == b"content"
    cache.keep("other", b"content")
    cache.shrink()
    assert cache.find("other") is None


def test_the_entries_used_longest_ago_are_removed_beyond_the_limit() -> None:
    cache = DiskCache("tried", limit=100_000)
    for number in range(20):
        cache.keep(str(number), bytes(10_000))
    used = {path: 1e9 + place for place, path in enumerate(files(cache.folder))}
    for path, when in used.items():
        os.utime(path, (when, when))
    assert cache.find("3") is not None
    oldest = [path for path, when in used.items() if path.stat().st_mtime == when]
    assert len(oldest) == 19
    cache.shrink()
    assert cache.usage().size <= 80_000
    assert cache.find("3") is not None
    left = files(cache.folder)
    assert set(left) >= set(oldest[-(len(left) - 1) :])


def test_what_is_kept_shrinks_the_folder_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_BETWEEN", 4)
    cache = DiskCache("tried", limit=50_000)
    for number in range(40):
        cache.keep(str(number), bytes(10_000))
    assert cache.usage().size <= 50_000 + 4 * 10_100


def test_what_killed_processes_left_behind_is_removed(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    (file,) = files(folder)
    old, new = file.with_suffix(".tmp"), file.with_name("new.tmp")
    old.write_text("half")
    new.write_text("half")
    os.utime(old, (1e9, 1e9))
    cache.shrink()
    assert files(folder) == sorted([file, new])


def test_threads_that_write_at_once_leave_whole_files(folder: Path) -> None:
    contents = [bytes([number]) * 50_000 for number in range(8)]

    def work(content: bytes) -> bool:
        cache = DiskCache("tried", limit=10_000_000)
        for _ in range(20):
            cache.keep("key", content)
            found = cache.find("key")
            if found not in contents:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(copy_context().run, work, content) for content in contents]
        assert all(future.result() for future in futures)
    assert len(files(folder)) == 1


def test_processes_that_write_at_once_leave_whole_files(folder: Path) -> None:
    text = """
import sys
from pyrelay.disk_cache import DiskCache
cache = DiskCache("tried", limit=300_000)
for number in range(200):
    content = str(number % 10).encode() * 20_000
    cache.keep(str(number % 10), content)
    assert cache.find(str(number % 10)) in (content, None)
    if number % 50 == 0:
        cache.shrink()
"""
    environment = {**os.environ, "PYRELAY_CACHE_DIR": str(folder.parent)}
    environment["PYTHONPATH"] = str(Path(disk_cache.__file__).parents[1])
    command = [sys.executable, "-c", text]
    running = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    for number in range(10):
        found = DiskCache("tried", limit=300_000).find(str(number))
        assert found in (None, str(number).encode() * 20_000)


def test_a_cleared_cache_is_empty(folder: Path) -> None:
    cache = DiskCache("tried", limit=1000)
    cache.keep("key", b"content")
    assert cache.usage().entries == 1
    cache.clear()
    assert cache.usage() == Usage(0, 0)
    assert cache.find("key") is None
    cache.clear()
    cache.keep("key", b"content")
    assert cache.find("key") == b"content"
