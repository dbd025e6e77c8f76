"""The kernels run in Triton's interpreter here, which must be told so before it is imported.

Every kernel that was run is written down for `ahead_of_time.py`, which compiles them all.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pytest

assert "triton" not in sys.modules, "run tests/kernels in a process of its own"
os.environ["TRITON_INTERPRET"] = "1"
os.environ["PYRELAY_LOWERING"] = "triton-interpret"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the kernels of this process to the folder that `KERNELS` names."""
    from pyrelay.lower_triton.build import built_kernels

    folder = os.environ.get("KERNELS")
    kernels = built_kernels()
    if folder is not None and kernels:
        path = Path(folder) / f"{os.getpid()}.kernels"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(kernels))
