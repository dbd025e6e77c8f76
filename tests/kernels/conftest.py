"""The kernels run in Triton's interpreter here, which must be told so before it is imported."""

from __future__ import annotations

import os
import sys

assert "triton" not in sys.modules, "run tests/kernels in a process of its own"
os.environ["TRITON_INTERPRET"] = "1"
os.environ["PYRELAY_LOWERING"] = "triton-interpret"
