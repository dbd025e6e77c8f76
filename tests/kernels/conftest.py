"""The kernels run in Triton's interpreter here, which must be told so before it is imported.

Every kernel that was run is written down for `ahead_of_time.py`, which compiles them all.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Generator
from pathlib import Path
from unittest.mock import patch

import pytest

assert "triton" not in sys.modules, "run tests/kernels in a process of its own"
os.environ["TRITON_INTERPRET"] = "1"
os.environ["PYRELAY_LOWERING"] = "triton-interpret"


@pytest.fixture(autouse=True)
def looked_at() -> Generator[None]:
    """Look at all that kernels do to memory; new storage is poison, between guards."""
    from pyrelay.lower_triton import tape
    from pyrelay.lower_triton.prepare import Storage
    from tests.kernels.running import ACCESSES, GUARDS

    with (
        patch.object(Storage, "make", GUARDS.storage(ACCESSES.fresh)),
        patch.object(tape, "make_arena", GUARDS.arena),
        patch.object(tape, "slot_of", GUARDS.slot(tape.slot_of, ACCESSES.fresh)),
        ACCESSES.watching(),
    ):
        yield
    ACCESSES.clear()
    GUARDS.check()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the kernels of this process to the folder that `KERNELS` names."""
    from pyrelay.lower_triton.build import built_kernels

    folder = os.environ.get("KERNELS")
    kernels = built_kernels()
    if folder is not None and kernels:
        path = Path(folder) / f"{os.getpid()}.kernels"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(kernels))
