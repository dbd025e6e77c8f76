"""The C compiler of this machine: `CC`, else `cc`, `gcc` or `clang`, else the `ziglang` wheel."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, final

from ...dataclass import dataclass
from ...disk_cache import DiskCache

_NAMES: Final = ("cc", "gcc", "clang")
_TIMEOUT: Final = 300.0
"""Seconds after which a compiler hangs."""

VERSIONS: Final = DiskCache("compilers", limit=1 << 20)
"""The versions of compilers by their files."""

_SHOWN: Final = 4
"""How many lines of a compiler's complaints a notice shows."""


@final
class CannotBuild(Exception):  # noqa: N818  it is a fact about a machine, which is no error
    """C cannot be built: there is no compiler, or it refused a text."""


@final
@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: the words that call it, and the version that it prints."""

    command: tuple[str, ...]
    version: str

    def compile(self, text: str, flags: Sequence[str], folder: Path) -> bytes:
        """Compile a C text with some flags: a shared object, or with `-c` one for `link`. It is
        built in a folder. Raises CannotBuild."""
        return self._built({"program.c": text.encode()}, flags, folder)

    def link(self, objects: Sequence[bytes], flags: Sequence[str], folder: Path) -> bytes:
        """Return the shared object that objects make together, built in a folder. Raises
        CannotBuild."""
        files = {f"part{number}.o": content for number, content in enumerate(objects)}
        return self._built(files, flags, folder)

    def _built(self, files: Mapping[str, bytes], flags: Sequence[str], folder: Path) -> bytes:
        target = folder / "program.so"
        command = [*self.command, *flags, "-o", target.name, *files, "-lm"]
        try:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            done = _run(command, folder)
            if done.returncode != 0:
                raise CannotBuild(_complaint(self, done))
            return target.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            raise CannotBuild(f"`{shlex.join(self.command)}` did not run: {error}") from error


def find_compiler() -> Compiler:
    """Return the compiler of this machine. Raises CannotBuild if there is none."""
    return _find(os.environ.get("CC"))


@cache
def _find(chosen: str | None) -> Compiler:
    reasons: list[str] = []
    for command in _candidates(chosen):
        try:
            version = _version(command)
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(f"`{shlex.join(command)}` does not run: {error}")
            continue
        if version is not None:
            return Compiler(command, version)
        reasons.append(f"`{shlex.join(command)} --version` fails")
    if chosen:
        raise CannotBuild(f"CC={chosen}: {reasons[0] if reasons else 'there is no such program'}")
    none = "there is no C compiler: install gcc or clang, or run `pip install ziglang`"
    raise CannotBuild("; ".join([none, *reasons]))


def _version(command: Sequence[str]) -> str | None:
    """Return the version that a compiler prints, None if it fails; as another process has seen it
    if its file is the same, since to start it takes as long as to compile little. A command of
    several words may start another program, and is asked each time."""
    path = Path(command[0]).resolve()
    facts = path.stat() if len(command) == 1 and path.exists() else None
    key = None if facts is None else f"{path} {facts.st_size} {facts.st_mtime_ns}"
    found = None if key is None else VERSIONS.find(key)
    if found is not None:
        return found.decode()
    done = _run([*command, "--version"], None)
    if done.returncode != 0:
        return None
    version = done.stdout.strip()
    if key is not None:
        VERSIONS.keep(key, version.encode())
    return version


def _candidates(chosen: str | None) -> Iterator[tuple[str, ...]]:
    if chosen:
        words = shlex.split(chosen)
        if words and shutil.which(words[0]):
            yield tuple(words)
        return
    for name in _NAMES:
        path = shutil.which(name)
        if path is not None:
            yield (path,)
    if importlib.util.find_spec("ziglang") is not None:
        yield sys.executable, "-m", "ziglang", "cc"


def _run(command: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT,
        check=False,
    )


def _complaint(compiler: Compiler, done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"`{shlex.join(compiler.command)}` was ended by signal {-done.returncode}"
    lines = (done.stderr or done.stdout).splitlines()
    telling = [line for line in lines if "error" in line] or lines
    return "\n  ".join([f"`{shlex.join(compiler.command)}` refused a text:", *telling[:_SHOWN]])
