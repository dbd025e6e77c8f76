"""What kernels move, counted load by load: each input read once, each output written once.

What is moved is counted while the interpreter runs the text: every element of every load and store
that is not masked, as `accesses.Traffic` says. The least is each element once that is loaded at
all, and once that is stored, or what the cost model says a kernel needs, whichever is less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.ir.expr import Function, type_of
from pyrelay.ir.types import DType, SizeType, TensorType, Type, is_float
from pyrelay.lower_torch.constants import torch_dtype
from pyrelay.lower_triton.launch import KernelCall
from pyrelay.lower_triton.lower import lower
from pyrelay.passes.regions.cost import cost_of
from pyrelay.passes.regions.groups import Kind, group_of
from tests.golden import Golden
from tests.kernels.running import ACCESSES, CPU
from tests.unit.passes.regions import steps

MEASURED: Final = (Kind.POINTWISE, Kind.ROWS, Kind.UPDATES)
MORE: Final = 1.1
"""So much more than the least may be moved."""


def operand(ty: Type, sizes: Mapping[str, int], generator: torch.Generator) -> Any:
    """Give an operand of a type."""
    if isinstance(ty, SizeType):
        return ty.dim.evaluate(sizes)
    assert isinstance(ty, TensorType)
    assert isinstance(ty.dtype, DType)
    shape = [d.evaluate(sizes) for d in ty.shape]
    if is_float(ty.dtype):
        return torch.rand(shape, generator=generator).to(torch_dtype(ty.dtype))
    return torch.randint(0, 2, shape, generator=generator).to(torch_dtype(ty.dtype))


def kernels_of(program: Any) -> dict[str, Function]:
    """Give the kernel functions of a program."""
    cut = program.runner._looked_at.cut
    return {name: cut.module.functions[name] for name in cut.kernels}


def measured(name: str, function: Function, sizes: Mapping[str, int], reads: int) -> str:
    """Run the kernels of a function; give a line of what they move. Fails where they load an
    element more often than `reads` times."""
    ACCESSES.clear()
    generator = torch.Generator().manual_seed(0)
    operands = [operand(type_of(p), sizes, generator) for p in function.params]
    KernelCall(function, lower(function), CPU)(*operands)
    for traffic in ACCESSES.launches:
        for argument, count in traffic.moved.items():
            assert count <= MORE * reads * traffic.needed[argument], (argument, traffic)
    group = group_of(function)
    needed, moved, issued = (
        sum(sum(getattr(t, of).values()) for t in ACCESSES.launches)
        for of in ("needed", "moved", "issued")
    )
    least = min(needed, cost_of(group).bytes.evaluate(sizes))
    return (
        f"{name:12} {group.kind.name.lower():10} least {least:>10,} moved {moved:>10,} "
        f"({moved / least:5.3f}) issued {issued:>10,}"
    )


def lines(kernels: Mapping[str, Function], sizes: Mapping[str, int], reads: int = 1) -> str:
    """Give a line for each kernel that is elementwise or reduces rows."""
    found: list[str] = []
    for name, function in kernels.items():
        if group_of(function).kind in MEASURED:
            found.append(measured(name, function, sizes, reads))
    return "".join(f"{line}\n" for line in found)


def assert_least(text: str) -> None:
    """Fail if a kernel moves more than it may."""
    shares = [float(line.split("(")[1].split(")")[0]) for line in text.splitlines()]
    assert all(share <= MORE for share in shares), text


N, M = Dim("N"), Dim("M")
Rows = Tensor[Float, (N, M)]


@relay
def softmax(x: Rows):
    return relay.softmax(x, dim=-1)


@relay
def softmax_backward(x: Rows, w: Rows):
    return relay.grad(lambda x: (relay.softmax(x, dim=-1) * w).sum())(x)


@relay
def log_softmax(x: Rows):
    return relay.log_softmax(x, dim=-1)


@relay
def log_softmax_backward(x: Rows, w: Rows):
    return relay.grad(lambda x: (relay.log_softmax(x, dim=-1) * w).sum())(x)


@relay
def layer_norm(x: Rows, scale: Tensor[Float, (M,)], bias: Tensor[Float, (M,)]):
    return relay.layer_norm(x, (x.shape[1],), scale, bias)


@relay
def weighted_layer_norm(
    x: Rows, w: Rows, scale: Tensor[Float, (M,)], bias: Tensor[Float, (M,)]
) -> Float:
    return (relay.layer_norm(x, (x.shape[1],), scale, bias) * w).sum()


@relay
def layer_norm_backward(x: Rows, w: Rows, scale: Tensor[Float, (M,)], bias: Tensor[Float, (M,)]):
    return relay.grad(weighted_layer_norm, wrt=("x", "scale", "bias"))(x, w, scale, bias)


@relay
def rms_norm(x: Rows, scale: Tensor[Float, (M,)]):
    return relay.rms_norm(x, (x.shape[1],), scale)


@relay
def weighted_rms_norm(x: Rows, w: Rows, scale: Tensor[Float, (M,)]) -> Float:
    return (relay.rms_norm(x, (x.shape[1],), scale) * w).sum()


@relay
def rms_norm_backward(x: Rows, w: Rows, scale: Tensor[Float, (M,)]):
    return relay.grad(weighted_rms_norm, wrt=("x", "scale"))(x, w, scale)


@relay
def cross_entropy(x: Rows, y: Tensor[Int, (N,)]):
    return relay.softmax_cross_entropy(x, y)


@relay
def cross_entropy_backward(x: Rows, y: Tensor[Int, (N,)]):
    return relay.grad(lambda x: relay.softmax_cross_entropy(x, y))(x)


FUNCTIONS: Final[Mapping[str, int]] = {
    "softmax": 2,
    "softmax_backward": 3,
    "log_softmax": 2,
    "log_softmax_backward": 2,
    "layer_norm": 2,
    "layer_norm_backward": 3,
    "rms_norm": 2,
    "rms_norm_backward": 3,
    "cross_entropy": 1,
    "cross_entropy_backward": 2,
}
"""How often a row is read that is longer than the block of one program, 16384 elements: what is
stored for each element needs sums over the whole row, so the row is read again, and a gradient's
sums may need others first. It comes from the device's cache if the rows that all programs are at
work on fit there."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_that_fits_into_a_block_is_read_once(name: str, golden: Golden) -> None:
    text = lines(kernels_of(globals()[name]), {"N": 5, "M": 100})
    assert_least(text)
    golden(f"{name}.txt", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_longer_row_is_read_as_often_as_is_said(name: str, golden: Golden) -> None:
    text = lines(kernels_of(globals()[name]), {"N": 3, "M": 20_000}, FUNCTIONS[name])
    golden(f"{name}_long.txt", text)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("lenet_step", {"N": 2}),
        ("mlp_step", {"N": 3}),
        ("lstm_step", {"N": 3}),
        ("block_grad", {"B": 1, "T": 3}),
        ("tree_state", {}),
    ],
)
def test_a_network_moves_no_more_than_its_inputs_and_outputs(
    name: str, sizes: Mapping[str, int], golden: Golden
) -> None:
    text = lines(kernels_of(getattr(steps, name)), sizes)
    assert_least(text)
    golden(f"{name}.txt", text)
