"""The kernels run in Triton's interpreter, which an environment variable chooses before Triton is
imported; or, with `pytest -m gpu`, compiled on a GPU: the same tests, but for those that look at
the interpreter.

Every kernel that was interpreted is written down for `ahead_of_time.py`, which compiles them all.
"""

from __future__ import annotations

import os
import pickle
import sys
import zlib
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.conftest import asks_for_gpu

WITHOUT_DEVICE = (
    "accesses",
    "ahead_of_time",
    "build",
    "exact",
    "missing",
    "regions",
    "starting",
    "traffic",
)
"""Tests that look at the interpreter, at files, or at a pretended driver."""


def pytest_configure(config: pytest.Config) -> None:
    """Print where kernels run."""
    if asks_for_gpu(config):
        return
    assert "triton" not in sys.modules, "run tests/kernels in a process of its own"
    os.environ["TRITON_INTERPRET"] = "1"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have tests that run kernels need a GPU if they are to be compiled."""
    is_other = item.path.stem.removeprefix("test_") in WITHOUT_DEVICE
    if asks_for_gpu(item.config) and not is_other:
        item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def looked_at(request: pytest.FixtureRequest) -> Generator[None]:
    """Look at all that kernels do to memory; new storage is poison, between guards; inputs are
    new ones."""
    import torch

    from pyrelay.config import options
    from pyrelay.lower_triton.launching import tape
    from pyrelay.lower_triton.launching.prepare import Storage
    from tests.kernels.combining import by_halves
    from tests.kernels.running import ACCESSES, GUARDS, IS_INTERPRETED, SEED

    sys.stdout.write(f"for the same inputs: KERNELS_SEED={SEED}\n")
    torch.manual_seed(SEED + zlib.crc32(request.node.name.encode()))

    with ExitStack() as stack:
        stack.enter_context(patch.object(Storage, "make", GUARDS.storage(ACCESSES.fresh)))
        stack.enter_context(patch.object(tape, "make_arena", GUARDS.arena))
        slot_of = GUARDS.slot(tape.slot_of, ACCESSES.fresh)
        stack.enter_context(patch.object(tape, "slot_of", slot_of))
        lowering = "triton-interpret" if IS_INTERPRETED else "triton"
        stack.enter_context(options(lowering=lowering))
        if IS_INTERPRETED:
            stack.enter_context(ACCESSES.watching())
            stack.enter_context(by_halves())
        yield
    ACCESSES.clear()
    GUARDS.check()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the kernels of this process to the folder that `KERNELS` names."""
    from pyrelay.lower_triton.launching.build import built_kernels

    folder = os.environ.get("KERNELS")
    kernels = built_kernels()
    if folder is not None and kernels and not asks_for_gpu(session.config):
        path = Path(folder) / f"{os.getpid()}.kernels"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(kernels))
