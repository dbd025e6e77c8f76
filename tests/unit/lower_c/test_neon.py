"""The C for NEON, compiled for a processor that this machine need not have."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from pyrelay.ir.expr import type_of
from pyrelay.ir.types import SizeType
from pyrelay.kernels.calling import Form, Layout, NoKernel
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.lower_c.building.compiler import Compiler
from pyrelay.lower_c.building.texts import FLAGS
from pyrelay.lower_c.kernel import Kernel
from pyrelay.lower_c.math import NEON
from pyrelay.lower_c.text import lower
from pyrelay.lower_c.text.parts import in_parts
from tests.ops.checks import samples
from tests.ops.in_kernels import OPS
from tests.ops.test_kernels import program_of
from tests.unit.kernels.recognised import group_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang"),
]

GROUPS = 8
"""Operators are compiled in so many texts."""


def kernels_of(number: int) -> list[Kernel]:
    """Return the kernels of the first samples of some operators, for vectors of NEON."""
    found: list[Kernel] = []
    for op in OPS[number::GROUPS]:
        module, _ = program_of(op, samples(op)[0])
        fused = fuse(decompose(module, "main"))
        for name, function in fused.functions.items():
            if not name.startswith("kernel."):
                continue
            forms = (
                Form.NUMBER if isinstance(type_of(p), SizeType) else Form.CONTIGUOUS
                for p in function.params
            )
            own = f"{op.name}_{len(found)}"
            try:
                found += lower(group_of(function), Layout(tuple(forms)), NEON, own)
            except NoKernel:
                continue
    return found


@pytest.mark.parametrize("number", range(GROUPS))
def test_kernels_of_operators_compile_for_neon(number: int, tmp_path: Path) -> None:
    kernels = kernels_of(number)
    assert kernels
    compiler = Compiler((sys.executable, "-m", "ziglang", "cc"), "for tests")
    parts = in_parts(kernels, NEON)
    for text in (parts.prefix, *parts.beside):
        flags = (*FLAGS, "-target", "aarch64-linux-gnu", "-c")
        assert compiler.compile(text, flags, tmp_path)
