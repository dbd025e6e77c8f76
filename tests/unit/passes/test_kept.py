"""Modules behind pipelines are found again on disk, exactly, and only where nothing differs."""

from __future__ import annotations

import linecache
import logging
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, options, relay
from pyrelay.disk_cache import DiskCache
from pyrelay.ir.module import Module, ModuleKey
from pyrelay.ir.verify import Stage
from pyrelay.kernels.backend import KernelFunction
from pyrelay.kernels.fusion.own_calls import OwnCalls
from pyrelay.kernels.outlined import OUTLINED, outlined_of
from pyrelay.kernels.pipeline import CUT
from pyrelay.lower_c.backend import CBackend
from pyrelay.passes import kept
from pyrelay.passes.base import Context
from pyrelay.passes.kept import KeptModules
from pyrelay.passes.manager import Manager, Phase, Pipeline, Ran, up_to
from pyrelay.passes.pipeline import called, fusible
from pyrelay.runtime.calls.function import RelayFunction
from pyrelay.runtime.compile.kernels import Kernels
from pyrelay.runtime.compile.pipelines import pipeline_of
from pyrelay.text.json import to_json
from pyrelay.text.parser import parse_module
from tests.loading import load_file

N = Dim("N")
TEXT = "def @main(%x: Tensor[(3,), float32]) { exp(%x) * 2f32 + (1f32 + 1f32) }"
factor = 2.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a cache that is empty, in effect for a test."""
    with options(cache_dir=tmp_path, cache=True, verify=False):
        yield tmp_path / "programs"


def behind(
    pipeline: Pipeline, module: Module, entry: str = "main", *facts: str
) -> tuple[Module, list[str]]:
    """Return the module behind a pipeline, as another process would get it, and the passes that
    ran."""
    ran: list[str] = []

    def note(each: Ran) -> None:
        ran.append(each.step.name)

    found = KeptModules(module, Stage.TRANSLATED, entry, facts, (OUTLINED,))
    context = Context(entry=entry)
    manager = Manager(module, Stage.TRANSLATED, context, observer=note, store=lambda: found)
    return manager.run(pipeline), ran


def test_a_module_is_found_exactly_as_it_was_and_no_pass_runs() -> None:
    module = parse_module(TEXT)
    made, ran = behind(called(), module)
    found, again = behind(called(), module)
    assert ran
    assert not again
    assert to_json(found) == to_json(made)


def test_passes_that_follow_begin_with_the_module_that_was_kept() -> None:
    module = parse_module(TEXT)
    behind(fusible(), module)
    _, ran = behind(CUT, module)
    assert ran == [step.name for step in CUT[-1].passes]


LOOPS = """
def @pointwise(%x: Tensor[(8, 4), float32]) { tanh(%x) * 2f32 }
def @rows(%x: Tensor[(8, 4), float32]) { softmax(%x, dim=1) }
def @product(%x: Tensor[(8, 4), float32], %y: Tensor[(4, 3), float32]) { tanh(matmul(%x, %y)) }
def @scattered(%x: Tensor[(8, 4), float32], %i: Tensor[(8, 4), int64], %y: Tensor[(8, 4), float32])
    { tanh(scatter_add(%x, %i, %y, dim=1)) }
def @twice(%x: Tensor[(8, 4), float32]) { sum(exp(%x)) + sum(softmax(tanh(%x), dim=0)) }
"""


@pytest.mark.parametrize("entry", ["pointwise", "rows", "product", "scattered", "twice"])
def test_kernels_and_regions_are_found_as_they_were(entry: str) -> None:
    module = parse_module(LOOPS)
    pipeline = pipeline_of(CBackend(), None)
    made, ran = behind(pipeline, module, entry)
    found, again = behind(pipeline, module, entry)
    assert ran
    assert not again
    assert to_json(found, (OUTLINED,)) == to_json(made, (OUTLINED,))
    kernels, before = outlined_of(found), outlined_of(made)
    assert [g.kind for g in kernels.groups.values()] == [g.kind for g in before.groups.values()]
    for name, group in kernels.groups.items():
        assert group.function is found.functions[name]
        given = CBackend().text(KernelFunction(name, group))
        assert given == CBackend().text(KernelFunction(name, before.groups[name]))
    regions = [Kernels(CBackend(), m, torch.device("cpu")).regions() for m in (found, made)]
    for region, known in zip(*regions, strict=True):
        assert CBackend().region_text(region) == CBackend().region_text(known)


def test_pipelines_with_functions_from_outside_are_not_kept() -> None:
    module = parse_module(TEXT)
    pipeline = (*CUT, Phase("own", (OwnCalls(lambda _: False),)))
    behind(pipeline, module)
    _, ran = behind(pipeline, module)
    assert "own-calls" in ran


def test_whatever_a_module_depends_on_is_in_its_key() -> None:
    module = parse_module(TEXT)
    behind(called(), module)
    others = (
        behind(called(), parse_module(TEXT.replace("2f32", "3f32"))),
        behind(called(), parse_module(f"\n{TEXT}")),  # spans are others
        behind(called(()), module),
        behind(called(), module, "main", "another torch"),
        behind(called(), replace(module, strict_dtypes=True)),
    )
    assert all(ran for _, ran in others)


def test_what_json_cannot_hold_is_not_kept(folder: Path) -> None:
    module = parse_module(TEXT)
    key: ModuleKey[int] = ModuleKey("one")
    behind(called(), module.with_attribute(key, 1))
    assert not DiskCache("programs", 0).usage().entries
    behind(up_to(called(), "typed"), module)
    assert DiskCache("programs", 0).usage().entries == 1
    assert folder.is_dir()


@pytest.mark.parametrize("content", [b"", b"typed", b"typed\n{}", b"typed\nnot json"])
def test_foreign_contents_are_left_aside(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_module(TEXT)
    made, _ = behind(called(), module)
    monkeypatch.setattr(DiskCache, "find", lambda *_: content)
    found, ran = behind(called(), module)
    assert ran
    assert to_json(found) == to_json(made)


def again(function: Any) -> Any:
    """Return a relay function as another process has it, with nothing compiled."""
    return RelayFunction(function.__relay__)


def passes_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged of passes."""
    return [r.message for r in caplog.records if r.name == "pyrelay.passes"]


@relay
def part(x: Tensor[Float, (N,)], i: Int) -> Float:
    y = relay.tanh(x) * 3
    return y[i]


def test_a_program_that_was_kept_computes_and_fails_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(3)
    first = part(x, 1)
    with pytest.raises(RunError) as error:
        part(x, 5)
    place = re.search(r"--> \S+:\d+:\d+", str(error.value))

    def runs(*_: object, **__: object) -> None:
        raise AssertionError("a pass runs")

    monkeypatch.setattr("pyrelay.passes.manager.run_passes", runs)
    second = again(part)
    torch.testing.assert_close(second(x, 1), first, rtol=0, atol=0)
    with pytest.raises(RunError) as error:
        second(x, 5)
    assert place is not None
    assert place.group() in str(error.value)
    assert second.type == part.type
    with pytest.raises(AssertionError, match="a pass runs"), options(cache=False):
        again(part)(x, 1)


def test_gradients_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def total(x: Tensor[Float, (N,)]) -> Float:
        return relay.sum(x * x * x)

    x = torch.randn(4, requires_grad=True)
    total(x).backward()
    slope, x.grad = x.grad, None
    monkeypatch.setattr("pyrelay.passes.manager.run_passes", None)
    again(total)(x).backward()
    torch.testing.assert_close(x.grad, slope, rtol=0, atol=0)


def test_passes_run_where_somebody_looks_at_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.randn(3)
    part(x, 1)
    with options(verify=True, dump_dir=tmp_path / "dumped"):
        again(part)(x, 1)
    assert list((tmp_path / "dumped").iterdir())
    caplog.set_level(logging.INFO, "pyrelay.passes")
    again(part)(x, 1)
    assert passes_of(caplog)


def test_captured_values_are_part_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @relay
    def scaled(x: Tensor[Float, (N,)]):
        return x * factor

    x = torch.ones(3)
    for function in (scaled, again(scaled)):
        for value in (2.0, 3.0, 4.0):
            monkeypatch.setitem(globals(), "factor", value)
            assert function(x).tolist() == [value] * 3


HELPER = """
from dataclasses import dataclass
from enum import Enum

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")
SHIFT = 1.0


class Kind(Enum):
    WIDE = 2.0


@dataclass(frozen=True)
class Pair:
    a: Float
    b: Float


@relay
def inner(x: Float, scale: Float = 3.0) -> Float:
    return relay.tanh(x) * scale
"""
PROGRAM = """
import helper

from pyrelay import Float, relay


@relay
def outer(pair: helper.Pair) -> Float:
    return helper.inner(pair.a - pair.b) * helper.Kind.WIDE.value + helper.SHIFT
"""
CHANGES = (
    ("SHIFT = 1.0", "SHIFT = 4.0"),
    ("WIDE = 2.0", "WIDE = 5.0"),
    ("scale: Float = 3.0", "scale: Float = 6.0"),
    ("relay.tanh(x) * scale", "relay.sinh(x) * scale"),
    ("    a: Float\n    b: Float", "    b: Float\n    a: Float"),
)


def test_a_change_in_another_module_is_noticed_though_size_and_time_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("helper", "program"):
        monkeypatch.setitem(sys.modules, name, sys)  # taken out afterwards
    program, helper = tmp_path / "program.py", tmp_path / "helper.py"
    program.write_text(PROGRAM)

    def called(text: str) -> float:
        """Return what another process gets, whose module `helper` has a text."""
        helper.write_text(text)
        os.utime(helper, (1.0, 1.0))
        linecache.clearcache()
        made = load_file(helper)
        result = load_file(program).outer(made.Pair(torch.tensor(0.5), torch.tensor(0.25)))
        return round(float(result), 4)

    results = [called(HELPER)]
    for before, after in CHANGES:
        assert HELPER.count(before) == 1
        results.append(called(HELPER.replace(before, after)))
    x, y = math.tanh(0.25), math.sinh(0.25)
    wanted = [6 * x + 1, 6 * x + 4, 15 * x + 1, 12 * x + 1, 6 * y + 1, 1 - 6 * x]
    assert results == [round(value, 4) for value in wanted]
    assert called(HELPER) == results[0]


def test_a_cache_that_is_removed_while_it_is_used_is_made_again(folder: Path) -> None:
    x = torch.tensor([0.5, 1.0])
    first = part(x, 1)
    shutil.rmtree(folder.parent)
    assert again(part)(x, 1).tolist() == first.tolist()
    assert folder.is_dir()
    shutil.rmtree(folder.parent)
    folder.parent.write_text("a file in its place")
    assert again(part)(x, 1).tolist() == first.tolist()


def test_large_constants_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_MOST_BYTES", 8)
    table = np.arange(3, dtype=np.float32)

    @relay
    def shifted(x: Tensor[Float, (3,)]):
        return x + relay.const(table)

    shifted(torch.zeros(3))
    assert not DiskCache("programs", 0).usage().entries
