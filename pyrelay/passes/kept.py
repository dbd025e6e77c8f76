"""Modules behind pipelines, kept on disk: another process begins with them, and skips the passes.

A module is kept under everything that it depends on: the module that the pipeline begins with, with
its sources and spans; the passes with their options; the entry; the versions of Python and of
pyrelay, whose own files count as well; the processor, since constants are folded on it. What is
kept is data: the stage and the module as JSON. What JSON cannot hold exactly is not kept: operators
of users, captured numbers that change, large constants, and attributes that the store does not
know.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Final, final

from ..cpu import cpu
from ..disk_cache import DiskCache
from ..ir.expr import Call, Constant, TensorData
from ..ir.module import Module
from ..ir.op import Op
from ..ir.traverse import nodes_of
from ..ir.verify import Stage
from ..operators.captured import CAPTURED
from ..operators.table import BY_NAME
from ..text.json import Attributes, kept_value, to_json
from ..version import __version__
from .base import Pass
from .manager import Pipeline

PROGRAMS: Final = DiskCache("programs", limit=128 << 20)
"""Modules behind pipelines, by what they depend on."""

_PACKAGE: Final = f"{__name__.partition('.')[0]}."

_MOST_BYTES: Final = 1 << 20
"""A program with more bytes of constants is not kept."""


@final
class KeptModules:
    """The modules behind pipelines that begin with one module."""

    def __init__(
        self,
        module: Module,
        stage: Stage,
        entry: str,
        facts: Sequence[str],
        attributes: Attributes = (),
    ) -> None:
        """`facts` are what else the passes depend on, such as the version of what folds.
        `attributes` are kept with modules that have them."""
        self._module: Final = module
        self._attributes: Final = attributes
        self._head: Final = (*_facts(), *facts, stage.value, entry)

    def find(self, phases: Pipeline) -> tuple[Module, Stage] | None:
        """Return the module behind some phases, and its stage; None where it was not kept."""
        key = self._key(phases)
        return None if key is None else self._read(key)

    def _read(self, key: str) -> tuple[Module, Stage] | None:
        content = PROGRAMS.find(key)
        if content is None:
            return None
        stage, _, text = content.decode().partition("\n")
        module = kept_value(text, Module, self._attributes)
        return None if module is None else (module, Stage(stage))

    def behind(self, target: str) -> Module | None:
        """Return the module behind the pipeline that was named so; None where it was not kept."""
        named = self.named(target)
        key = None if named is None else PROGRAMS.find(named)
        found = None if key is None else self._read(key.decode())
        return None if found is None else found[0]

    def name(self, target: str, phases: Pipeline) -> None:
        """Name the pipeline that leads to a target, so that the module behind it is found without
        it, if that was kept."""
        key = self._key(phases)
        named = self.named(target)
        if key is not None and named is not None and PROGRAMS.has(key):
            PROGRAMS.keep(named, key.encode())

    def holds(self, module: Module) -> bool:
        """Return whether all attributes of a module are kept with it."""
        return all(key in self._attributes for key in module.attributes)

    def keep(self, phases: Pipeline, module: Module, stage: Stage) -> None:
        """Keep the module behind some phases, if it is data."""
        if not _is_data(module):
            return
        key = self._key(phases)
        if key is not None:
            text = to_json(module, self._attributes)
            PROGRAMS.keep(key, f"{stage.value}\n{text}".encode())

    def _key(self, phases: Pipeline) -> str | None:
        passes = [text for phase in phases for text in (phase.name, *map(_text, phase.passes))]
        if self._start is None or None in passes:
            return None
        return json.dumps([*self._head, passes, self._start])

    def named(self, target: str) -> str | None:
        """Return a text that determines the module behind a pipeline that is named so; None if JSON
        cannot hold the first module."""
        if self._start is None:
            return None
        return json.dumps([*self._head, "target", target, self._start])

    @cached_property
    def _start(self) -> str | None:
        """A digest of the first module; None if JSON cannot hold it."""
        if self._module.attributes or not _is_data(self._module):
            return None
        return hashlib.sha256(to_json(self._module).encode()).hexdigest()


def _is_data(module: Module) -> bool:
    """Return whether JSON holds the functions of a module exactly, and in a size that pays."""
    size = 0
    for node in nodes_of(module):
        match node:
            case Call(callee=Op() as op) if BY_NAME.get(op.name) is not op:
                return False
            case Constant(value=TensorData(data=data)):
                size += len(data)
            case Constant(value=value) if isinstance(value, CAPTURED):
                return False
            case _:
                pass
    return size <= _MOST_BYTES


def _text(step: Pass) -> str | None:
    """Return a pass with its options as text; None if one is a function from outside the package,
    which may change where the package does not."""
    found = [type(step).__name__]
    for field in fields(step) if is_dataclass(step) else ():
        value = getattr(step, field.name)
        if not isinstance(value, FunctionType):
            found.append(repr(value))
        elif value.__module__.startswith(_PACKAGE):
            found.append(f"{value.__module__}.{value.__qualname__}")
        else:
            return None
    return " ".join(found)


@cache
def _facts() -> tuple[str, ...]:
    """Return the versions and the processor that the module behind any pipeline depends on."""
    return ("1", __version__, _own_files(), platform.python_version(), cpu().key)


def _own_files() -> str:
    """Return a digest of the sizes and times of the files of the package: passes are edited more
    often than versions change."""
    found: list[tuple[str, int, int]] = []
    pending = [Path(__file__).parents[1]]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir() and entry.name != "__pycache__":
                    pending.append(Path(entry.path))
                elif entry.is_file():
                    state = entry.stat()
                    found.append((entry.path, state.st_size, state.st_mtime_ns))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()
