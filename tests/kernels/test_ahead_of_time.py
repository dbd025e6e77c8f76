"""Compiling kernels without a device, as `make kernels` does."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from pyrelay.kernels.calling import Form
from pyrelay.lower_triton.kernel import Config
from tests.kernels.ahead_of_time import compile_for_all
from tests.kernels.machine_code import compiling
from tests.kernels.running import kernels
from tests.kernels.test_machine_code import alternatives

ROOT = Path(__file__).parents[2]


def test_kernels_are_counted_and_one_that_fails_is_told_with_its_path(tmp_path: Path) -> None:
    (right,) = kernels("def @f[N: Dim](%x: Tensor[(N,), float32]) { %x * 2.0f32 }")
    wrong = replace(right, text=right.text.replace("tl.store", "tl.stored"))
    (tmp_path / "1.kernels").write_bytes(pickle.dumps((right, wrong)))
    (tmp_path / "2.kernels").write_bytes(pickle.dumps((right,)))
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.ahead_of_time", str(tmp_path)],
        cwd=ROOT,
        env={**environment, "PYRELAY_CACHE_DIR": str(tmp_path), "PYRELAY_LOWERING": "triton"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    said = "2 distinct kernels interpreted, 1 compiled for sm_80, sm_90, gfx942"
    assert said in done.stdout, done.stderr
    path = re.search(rf"^(.*): {right.name} for 80: .*", done.stderr, re.MULTILINE)
    assert path is not None
    assert Path(path[1]).read_text() == wrong.text


PRODUCT = """def @f[M: Dim, N: Dim, K: Dim](
    %x: Tensor[(M, K), float32], %y: Tensor[(K, N), float32]) { matmul(%x, %y) }"""


def test_a_kernel_that_does_not_fit_a_target_is_told() -> None:
    last = list(alternatives(PRODUCT))[-1]
    assert "tl.dot" in last.text
    sizes = (("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 64), ("GROUP", 8))
    bold = replace(last, configs=(Config(sizes, num_warps=8, num_stages=3),))
    with compiling() as pool:
        assert pool.submit(compile_for_all, last).result() is None
        said = pool.submit(compile_for_all, bold).result()
    assert said is not None
    assert re.search(r"f for gfx942: \d+ bytes of shared memory are more than there are", said)


ROLLED = """def @f[M: Dim, N: Dim](%x: Tensor[(M, N), float32]) {
    roll(%x, shifts=(1, 2), dims=(0, 1))
}"""


def test_sizes_of_1_are_constants_of_a_kernel() -> None:
    (right,) = kernels(ROLLED, Form.STRIDED)
    assert "integer_remainder" in right.text
    with compiling() as pool:
        assert pool.submit(compile_for_all, right).result() is None
