"""Fixtures and options of all tests, and hypothesis's profiles."""

from __future__ import annotations

import gc
import os
import re
import zlib
from collections.abc import Generator, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pyrelay.dispatch.registry import REGISTRY
from tests.folder_times import table
from tests.golden import Golden, folder_of
from tests.torchless import needs_torch

os.environ.setdefault("PYRELAY_VERIFY", "1")  # every program of every test, after every stage

# Most programs of the tests run a few times, and to build C for them takes longer than all else.
# The tests of C ask for it, and `make lowerings` runs all programs in C.
os.environ.setdefault("PYRELAY_LOWERING", "torch")

# How long something takes says nothing on a machine that does other things besides.
settings.register_profile(
    "patient",
    settings.get_profile("default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
if settings.get_current_profile_name() == "default":  # in CI hypothesis chooses its own
    settings.load_profile("patient")


KERNELS = Path(__file__).parent / "kernels"
"""Tests that have Triton interpret its kernels, which it is told before it is imported."""

READ_BACK = {Path(__file__).parent / name for name in ("models", "relay", "seed")}
"""Tests whose programs are printed and read back at every stage; `make round-trip` takes more."""

HAS_TORCH = find_spec("torch") is not None

FORCED = os.environ["PYRELAY_LOWERING"]
"""What all programs are to be run by; the tests of kernels choose for themselves."""


def pytest_configure(config: pytest.Config) -> None:
    """Have the tests run by the lowering that was asked for. Those of kernels ask for their own,
    which the workers of a process that runs them find among the variables that it was given."""
    if FORCED != "torch" and not _are_of_kernels(config):
        config.pluginmanager.import_plugin("tests.lowerings")


def _are_of_kernels(config: pytest.Config) -> bool:
    return any("kernels" in a for a in config.args)


def asks_for_gpu(config: pytest.Config) -> bool:
    """Return whether the tests that need a GPU are to run: `-m gpu`, whatever else it says."""
    return re.search(r"(?<!not )\bgpu\b", str(config.option.markexpr)) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what cannot run here: where torch is not installed the test files that import it,
    and the kernels' tests, for which a process must be started, but not on a GPU."""
    asked = asks_for_gpu(config) or _are_of_kernels(config)
    if collection_path == KERNELS and not asked:
        return True
    is_test = collection_path.suffix == ".py" and not HAS_TORCH
    return True if is_test and needs_torch(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of a sampled test to the slow tests: always the same ones."""
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and zlib.crc32(item.nodeid.encode()) % sampled.args[0]:
            item.add_marker("slow")


@pytest.fixture
def frozen_heap() -> Generator[None]:
    """Leave out what earlier tests made of the garbage collections in a test."""
    gc.freeze()
    yield
    gc.unfreeze()


def pytest_sessionfinish() -> None:
    """Leave the garbage to the end of the process: pytest and the interpreter would look through
    the programs of all tests several times."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("gpu") is not None and (reason := _no_gpu()):
        pytest.skip(f"needs a GPU: {reason}")


@cache
def _no_gpu() -> str | None:
    """Return why there is no GPU; None where there is one."""
    if not HAS_TORCH:
        return "torch is not installed"
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} was built without CUDA"
    return None if torch.cuda.is_available() else f"torch {torch.__version__} sees no CUDA device"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Where torch is not installed, skip the tests that run what they compile."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if HAS_TORCH or error.name != "torch":
            raise
        pytest.skip("runs a program, which takes torch")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden` and `--folder-times`."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected text of golden tests"
    )
    parser.addoption(
        "--folder-times", action="store_true", help="report the time of the tests of each folder"
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the time per folder if it is asked for."""
    if not config.option.folder_times:
        return
    terminalreporter.section("time per folder")
    reports = [r for found in terminalreporter.stats.values() for r in found]
    for line in table([r for r in reports if isinstance(r, pytest.TestReport)]):
        terminalreporter.line(line)


@pytest.fixture(autouse=True)
def _implementations_unchanged() -> Iterator[None]:
    """Check that no test leaves an implementation of an operator behind."""
    before = REGISTRY.table
    yield
    assert REGISTRY.table.registrations == before.registrations


@pytest.fixture(autouse=True)
def _reads_back(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs read back where the tests are ones that say so."""
    if request.path.parent in READ_BACK and FORCED == "torch":
        from pyrelay.runtime.compile.program import Program
        from tests.round_trip import read_back

        monkeypatch.setattr(Program, "_ran", read_back)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Return whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(request: pytest.FixtureRequest, update_golden: bool) -> Golden:
    """Return the comparison with the golden files of the test's own file."""
    return Golden(folder_of(request.path), update=update_golden)
