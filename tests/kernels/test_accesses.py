"""What looks at kernels sees what it should: each test is a kernel with one mistake."""

from __future__ import annotations

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.dims import Dim
from pyrelay.ir.types import float32
from pyrelay.kernels.calling import Read, Size, Written
from pyrelay.lower_triton.kernel import Config, Kernel, Lowered, Tiles
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.text.parser import parse_module
from tests.kernels.running import ACCESSES, CPU, GUARDS

N = Dim.of("N")
COPY = """
#[pyrelay = "1"]
def @copy[N: Dim](%x: Tensor[(N,), float32]) -> Tensor[(N,), float32] {
  %x
}
"""
TEXT = """\
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x, mask=i < n)
"""


def copied(text: str) -> torch.Tensor:
    """Run a kernel with 5 elements and two programs of 4."""
    arguments = (Read(0, float32), Written(0, float32, (N,)), Size(N))
    configs = (Config((("BLOCK", 4),), 1, 1),)
    names = ("x_ptr", "out_ptr", "n")
    kernel = Kernel("copy", text, names, arguments, ((Tiles(N, "BLOCK"),),), configs)
    (function,) = infer(parse_module(COPY)).functions.values()
    return KernelCall(function, lambda layout, target: Lowered((kernel,)), CPU)(
        GUARDS.copy(torch.arange(5.0), CPU)
    )


def test_a_kernel_without_a_mistake_passes_and_its_bytes_are_counted() -> None:
    assert torch.equal(copied(TEXT), torch.arange(5.0))
    (traffic,) = ACCESSES.launches
    assert traffic.programs == 2
    assert traffic.moved == traffic.issued == {"x_ptr": 20, "out_ptr": 20}


def test_what_a_program_loads_again_counts_again_and_what_others_load_does_not() -> None:
    twice = TEXT.replace("i < n)\n    tl.s", "i < n) + tl.load(x_ptr)\n    tl.s")
    copied(twice)
    (traffic,) = ACCESSES.launches
    assert traffic.issued["x_ptr"] == 20 + 2 * 4
    assert traffic.moved["x_ptr"] == 20 + 4


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("x_ptr + i, mask=i < n", "x_ptr + i, mask=i <= n", "loads out of bounds"),
        ("out_ptr + i, x, mask=i < n", "out_ptr + i, x", "stores out of bounds"),
        ("out_ptr + i, x", "x_ptr + i, x", "stores out of bounds"),
        ("x_ptr + i, mask", "out_ptr + i, mask", "loads what nothing has stored"),
        ("out_ptr + i, x", "out_ptr + i // 2, x", "is not the only one to store"),
        ("out_ptr + i, x", "out_ptr + i % 4, x", "is not the only one to store"),
        (
            "mask=i < n)\n",
            "mask=i < n)\n    tl.atomic_add(out_ptr, 1.0)\n",
            "adds to what nothing has stored",
        ),
    ],
)
def test_a_mistake_is_seen(right: str, wrong: str, message: str) -> None:
    assert right in TEXT
    with pytest.raises(Exception, match=message):
        copied(TEXT.replace(right, wrong, 1))


def test_a_load_of_what_the_program_has_stored_is_seen() -> None:
    with pytest.raises(Exception, match="loads what it has stored itself"):
        copied(TEXT + "    tl.load(out_ptr + i, mask=i < n)\n")


def test_what_is_not_stored_is_poison() -> None:
    found = copied(TEXT.replace("out_ptr + i, x, mask=i < n", "out_ptr + i, x, mask=i < n - 1"))
    assert found.isnan().tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("place", [-1, 3])
def test_a_write_beside_a_tensor_is_seen(dtype: torch.dtype, place: int) -> None:
    made = GUARDS.empty((3,), dtype, CPU)
    assert made.isnan().all() or not dtype.is_floating_point
    made.as_strided((1,), (1,), made.storage_offset() + place).zero_()
    with pytest.raises(AssertionError, match="bytes beside a tensor"):
        GUARDS.check()


def test_a_copy_has_the_strides_of_its_tensor_and_poison_between_elements() -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    for value in (whole.T, whole[::2, 1::3], whole[1].expand(3, 6), whole[:0], whole[0, 0]):
        copy = GUARDS.copy(value, CPU)
        assert torch.equal(copy, value)
        assert copy.stride() == value.stride()
    gaps = GUARDS.copy(whole[:, ::2], CPU)
    assert gaps.as_strided((2,), (1,), gaps.storage_offset() + 1).isnan().tolist() == [True, False]
    assert GUARDS.copy(3, CPU) == 3
