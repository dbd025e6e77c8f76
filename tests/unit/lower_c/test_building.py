"""C text becomes functions of this process, built once; without a compiler there is one notice."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrelay import notices
from pyrelay.config import options
from pyrelay.cpu import Cpu, cpu
from pyrelay.lower_c.building import (
    CannotBuild,
    Compiler,
    LibrarySource,
    build,
    build_all,
    build_or_notify,
    compiler,
    find_compiler,
    texts,
)
from tests.unit.lower_c.counted import Counted

pytestmark = pytest.mark.host("no program runs here")

LONG = ctypes.c_int64
SUM = "#include <stdint.h>\nint64_t sum(int64_t a, int64_t b) { return a + b; }\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a cache that is empty, in a process that has built nothing."""
    monkeypatch.setattr(texts, "_notified", threading.Event())
    monkeypatch.setattr(texts, "_refused", {})
    with options(cache_dir=tmp_path / "cache", cache=True):
        yield tmp_path / "cache" / "built"
    compiler._find.cache_clear()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is all there is on the path, and hide the wheel."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda _: None)
    compiler._find.cache_clear()
    return tools


def program(path: Path, body: str = "exit 1") -> Path:
    """Write a program that answers as a compiler does when its version is asked for."""
    version = f'case "$*" in *--version*) echo {path.name} 1.0; exit;; esac'
    path.write_text(f"#!/bin/sh\n{version}\n{body}\n")
    path.chmod(0o755)
    return path


def files(folder: Path) -> list[Path]:
    """Return the files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_text_becomes_a_function() -> None:
    built = build(SUM)
    assert built.function("sum", [LONG, LONG], LONG)(2, 40) == 42
    pointed = ctypes.CFUNCTYPE(LONG, LONG, LONG)(built.address("sum"))
    assert pointed(2, 40) == 42
    with pytest.raises(AttributeError):
        built.address("product")


def test_a_text_is_built_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    counted = Counted(monkeypatch)
    build(SUM)
    build(SUM)
    build_all([LibrarySource((SUM,)), LibrarySource((SUM,))])
    assert counted.texts == [SUM]
    assert len(files(folder)) == 1
    build(SUM, flags=["-DFAST"])
    build(SUM + "\n")
    assert len(counted.texts) == 3


def test_texts_are_built_together() -> None:
    sources = [LibrarySource((f"long f(void) {{ return {n}; }}",), f"f{n}") for n in range(5)]
    found = [library.function("f", [], LONG)() for library in build_all(sources)]
    assert found == [0, 1, 2, 3, 4]


def test_the_texts_of_a_library_call_each_other(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    counted = Counted(monkeypatch)
    texts = (
        "int half(int);\nint g(int x) { return half(x) + 1; }",
        "int half(int x) { return x / 2; }",
    )
    for _ in range(2):
        (library,) = build_all([LibrarySource(texts)])
        assert library.function("g", [ctypes.c_int], ctypes.c_int)(8) == 5
    assert sorted(counted.texts) == sorted(texts)
    assert len(files(folder)) == 1


def test_texts_that_do_not_fit_each_other_are_not_built(folder: Path) -> None:
    with pytest.raises(CannotBuild, match="refused a text"):
        build_all([LibrarySource(("int f(void) { return 1; }", "int f(void) { return 2; }"))])
    assert files(folder) == []


def test_another_compiler_version_processor_or_release_builds_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = set[str]()

    def key() -> str:
        return texts._key(Compiler(("cc",), "1.0"), LibrarySource((SUM,)))

    keys.add(key())
    assert key() in keys
    keys.add(texts._key(Compiler(("cc",), "1.1"), LibrarySource((SUM,))))
    keys.add(texts._key(Compiler(("gcc",), "1.0"), LibrarySource((SUM,))))
    keys.add(texts._key(Compiler(("cc",), "1.0"), LibrarySource((SUM,), flags=("-g",))))
    with monkeypatch.context() as changed:
        changed.setattr(texts, "__version__", "another")
        keys.add(key())
    with monkeypatch.context() as changed:
        changed.setattr(texts, "cpu", lambda: Cpu("x86_64", "another", frozenset({"sse2"})))
        keys.add(key())
    assert len(keys) == 6


@pytest.mark.parametrize("damage", [b"", b"foreign", b"\x7fELF"])
def test_a_cut_or_foreign_file_is_built_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    build(SUM)
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(damage)
    counted = Counted(monkeypatch)
    assert build(SUM).function("sum", [LONG, LONG], LONG)(1, 2) == 3
    assert counted.texts == [SUM]
    file.write_bytes(whole[: len(whole) // 2])
    build(SUM)
    assert len(counted.texts) == 2


def test_what_is_loaded_survives_its_file(folder: Path) -> None:
    built = build(SUM)
    (file,) = files(folder)
    with file.open("r+b") as written:
        written.truncate(10)
    assert built.function("sum", [LONG, LONG], LONG)(1, 2) == 3


def test_a_cache_that_is_off_or_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    counted = Counted(monkeypatch)
    with options(cache_dir=tmp_path / "file"):
        assert build(SUM).function("sum", [LONG, LONG], LONG)(1, 2) == 3
    with options(cache=False):
        build(SUM)
        build(SUM)
    assert len(counted.texts) == 3
    assert not (tmp_path / "cache").exists()


def test_processes_build_the_same_at_once(folder: Path) -> None:
    text = """
from pyrelay.lower_c.building import build
import ctypes
for n in range(4):
    text = "long f(void) { return %d; }" % n
    assert build(text).function("f", [], ctypes.c_long)() == n
"""
    root = Path(texts.__file__).parents[3]
    environment = {**os.environ, "PYRELAY_CACHE_DIR": str(folder.parent), "PYTHONPATH": str(root)}
    running = [subprocess.Popen([sys.executable, "-c", text], env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(files(folder)) == 4


def test_a_refused_text_is_said_with_the_reason_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    counted = Counted(monkeypatch)
    for _ in range(2):
        with pytest.raises(CannotBuild, match="error: expected"):
            build("int f(void) { return }")
    assert len(counted.texts) == 1
    assert files(folder) == []


def test_without_a_compiler_there_is_one_notice(
    tools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CannotBuild, match="pip install ziglang"):
        build(SUM)
    assert build_or_notify([LibrarySource((SUM,))]) is None
    assert build_or_notify([LibrarySource((SUM,))]) is None
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "there is no C compiler" in record.getMessage()
    assert "same values" in record.getMessage()


def test_a_compiler_that_is_asked_for_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    with pytest.raises(CannotBuild, match=r"CC=.*absent: there is no such program"):
        build(SUM)
    own = program(tmp_path / "own", f'exec {shutil.which("cc")} "$@"')
    monkeypatch.setenv("CC", f"{own} -O1")
    assert find_compiler() == Compiler((str(own), "-O1"), "own 1.0")
    assert build(SUM).function("sum", [LONG, LONG], LONG)(1, 2) == 3


def test_a_compiler_that_does_not_run_is_passed_over(tools: Path) -> None:
    (tools / "cc").write_text("no program")
    (tools / "cc").chmod(0o755)
    program(tools / "clang")
    assert find_compiler() == Compiler((str(tools / "clang"),), "clang 1.0")


def test_the_wheel_is_the_last_resort(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: name == "ziglang")
    asked: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], _: object) -> subprocess.CompletedProcess[str]:
        asked.append(tuple(command))
        return subprocess.CompletedProcess(command, 0, "zig 1.0\n", "")

    monkeypatch.setattr(compiler, "_run", run)
    assert find_compiler().version == "zig 1.0"
    assert asked == [(sys.executable, "-m", "ziglang", "cc", "--version")]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("kill -9 $$", "was ended by signal 9"),
        ("exit 1", "refused a text"),
        ("exit 0", "did not run: .*No such file"),
        ("for last; do :; done; echo half > program.so", "cannot be loaded"),
    ],
)
def test_a_build_that_is_killed_or_goes_wrong_leaves_nothing(
    tools: Path, folder: Path, body: str, reason: str
) -> None:
    program(tools / "cc", body)
    with pytest.raises(CannotBuild, match=reason):
        build(SUM)
    assert build_or_notify([LibrarySource((SUM,))]) is None
    assert [f for f in files(folder) if f.stat().st_size > 200] == []


def test_a_compiler_that_hangs_is_given_up(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools / "cc", "exec /bin/sleep 100")
    find_compiler()
    monkeypatch.setattr(compiler, "_TIMEOUT", 0.05)
    with pytest.raises(CannotBuild, match="did not run"):
        build(SUM)


def test_a_build_that_takes_long_is_announced(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    noticed = tmp_path / "noticed"
    waiting = f"while ! test -e {noticed}; do /bin/sleep 0.02; done; exit 1"
    program(tools / "cc", waiting)

    class Notice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            noticed.write_text(record.getMessage())

    handler = Notice()
    logging.getLogger("pyrelay.building").addHandler(handler)
    monkeypatch.setattr(notices, "_AFTER", 0.0)
    try:
        with pytest.raises(CannotBuild):
            build(SUM, name="fib")
    finally:
        logging.getLogger("pyrelay.building").removeHandler(handler)
    assert "C is being built for fib" in noticed.read_text()


def test_without_room_for_temporary_files_nothing_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(texts.tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(CannotBuild, match="no room"):
        build(SUM)


def test_flags_keep_values_that_are_no_numbers() -> None:
    text = """
    int is_nan(double x) { return x != x; }
    double zero(double x) { return x + 0.0; }
    float sum(float a, float b, float c) { return (a + b) + c; }
    """
    built = build(text)
    double, single = ctypes.c_double, ctypes.c_float
    assert built.function("is_nan", [double], ctypes.c_int)(float("nan")) == 1
    assert str(built.function("zero", [double], double)(-0.0)) == "0.0"
    assert built.function("sum", [single] * 3, single)(1e8, -1e8, 1.0) == 1.0


def test_the_processor_has_vectors_of_a_width_that_compilers_know() -> None:
    assert cpu() is cpu()
    assert cpu().vector_bytes in (16, 32, 64)
    assert Cpu("x86_64", "", frozenset({"avx2", "fma"})).vector_bytes == 32
    assert Cpu("aarch64", "", frozenset({"asimd"})).flags == ("-mcpu=native",)


def test_a_compiler_is_asked_for_its_version_once(tools: Path) -> None:
    path = program(tools / "cc")
    path.write_text(f"#!/bin/sh\necho asked >> {tools}/log\necho cc 1.0\n")
    for _ in range(2):
        assert find_compiler().version == "cc 1.0"
        compiler._find.cache_clear()  # another process
    assert (tools / "log").read_text() == "asked\n"
    path.write_text(f"#!/bin/sh\necho asked >> {tools}/log\necho cc 1.0.1\n")
    assert find_compiler().version == "cc 1.0.1"


def test_a_command_of_several_words_is_asked_each_time(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tools / "launcher")
    monkeypatch.setenv("CC", f"{path} cc")
    for version in ("1.0", "2.0"):
        path.write_text(f"#!/bin/sh\necho cc {version}\n")
        assert find_compiler().version == f"cc {version}"
        compiler._find.cache_clear()
