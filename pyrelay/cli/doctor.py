"""`doctor`: what a bug report needs, and what a user wonders about: versions, devices."""

from __future__ import annotations

import dataclasses
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from .. import __version__, config

_PACKAGES = ("torch", "triton", "numpy", "lark", "rich", "safetensors", "optree", "libcst")


def doctor() -> int:
    """Print how pyrelay finds itself on this machine."""
    for title, lines in (
        ("versions", _versions()),
        ("devices", _devices()),
        ("compilers", _compilers()),
        ("backends", _backends()),
        ("options", _options()),
    ):
        sys.stdout.write(f"{title}\n")
        for name, value in lines:
            sys.stdout.write(f"  {name:<16} {value}\n")
    return 0


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _versions() -> Iterator[tuple[str, str]]:
    yield "pyrelay", f"{__version__} at {Path(__file__).parents[1]}"
    yield "python", f"{platform.python_version()} at {sys.executable}"
    yield "platform", platform.platform()
    for package in _PACKAGES:
        yield package, _version(package)


def _devices() -> Iterator[tuple[str, str]]:
    import torch  # only this command pays for it

    yield "cpu", f"{os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads"
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            yield f"cuda:{index}", torch.cuda.get_device_name(index)
    else:
        built = torch.version.cuda
        why = f"torch is built for CUDA {built}, no device answers" if built else "a torch for CPUs"
        yield "cuda", f"none: {why}"
    if torch.backends.mps.is_available():
        yield "mps", "available"


def _compilers() -> Iterator[tuple[str, str]]:
    from ..lower_c.building import CannotBuild, find_compiler

    try:
        compiler = find_compiler()
    except CannotBuild as error:
        yield "C", str(error)
        return
    yield "C", f"{compiler.version.splitlines()[0]} at {shlex.join(compiler.command)}"


def _backends() -> Iterator[tuple[str, str]]:
    import torch  # as above

    from ..lower_c.building import can_build
    from ..runtime.compile.lowerings import all_backends

    yield "auto", f"{'c' if can_build() else 'torch'} on cpu, torch on other devices"
    kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    for name, backend in all_backends().items():
        reasons = {kind: backend.unavailable(torch.device(kind)) for kind in kinds}
        runs = [kind for kind, why in reasons.items() if why is None]
        versions = "".join(f" ({package} {version})" for package, version in backend.versions())
        found = f"runs on {' and '.join(runs)}" if runs else reasons[kinds[-1]]
        yield name, f"{found}{versions}"


def _options() -> Iterator[tuple[str, str]]:
    options = config.current()
    for option in dataclasses.fields(options):
        variable = config.PREFIX + option.name.upper()
        origin = variable if variable in os.environ else "default"
        value = getattr(options, option.name)
        yield option.name, f"{value!s:<24} {option.metadata['doc']} ({origin})"
