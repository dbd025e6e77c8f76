"""Calls that are like one before: nothing is checked again, and everything else is noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad

from pyrelay import Dim, Float, Int, RunError, Tensor, dispatch, int32, options, relay, uint8

pytestmark = pytest.mark.host("the evaluator and what is dispatched have no direct calls")

N = Dim("N")
M = Dim("M")
scale = 2.0


@relay
def added(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x * x + y


@relay
def scaled(x: Tensor[Float, (N,)]):
    return x * scale


def test_the_second_call_of_a_kind_is_direct(general: list[str]) -> None:
    x, y = torch.randn(3), torch.randn(3)
    longer = torch.randn(5)
    for _ in range(3):
        torch.testing.assert_close(added(x, y), x * x + y)
        torch.testing.assert_close(added(longer, longer), longer * longer + longer)
    assert general == ["added", "added"]
    assert added.cache_info().hits == 5


def test_every_other_call_is_checked() -> None:
    x = torch.randn(3)
    for _ in range(2):
        added(x, x)
    with pytest.raises(RunError, match="missing a required argument: 'y'"):
        added(x)  # pyright: ignore[reportCallIssue]
    with pytest.raises(RunError, match="N"):
        added(x, torch.randn(4))
    with pytest.raises(RunError, match="float64"):
        added(x, x.double())
    with pytest.raises(RunError, match="got the str 'x' as `y`"):
        added(x, "x")
    with pytest.raises(RunError, match="unexpected keyword argument 'z'"):
        added(x, x, z=x)  # pyright: ignore[reportCallIssue]
    with pytest.raises(RunError, match="multiple values for argument 'x'"):
        added(x, x=x)  # pyright: ignore[reportCallIssue]


def test_a_sparse_tensor_is_refused_where_code_cannot_read_it() -> None:
    x = torch.randn(3)
    with options(lowering="c"):
        for _ in range(2):
            added(x, x)
        for _ in range(2):
            with pytest.raises(RunError, match=r"(?s)sparse_coo.*x\.to_dense\(\)"):
                added(x.to_sparse(), x)


def test_a_masked_array_is_refused_after_a_whole_one() -> None:
    x = torch.randn(3)
    array: Any = x.numpy()
    for _ in range(2):
        torch.testing.assert_close(added(array, x), x * x + x)
    with pytest.raises(RunError, match=r"(?s)masked.*x\.filled"):
        added(np.ma.array(array, mask=[False, True, False]), x)


def test_a_call_joins_the_graph_of_torch() -> None:
    x = torch.randn(3)
    added(x, x)
    leaf = x.clone().requires_grad_()
    added(leaf, x).sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * x)
    with torch.no_grad():
        assert not added(leaf, x).requires_grad
    assert torch.is_grad_enabled()
    assert not added(x, x).requires_grad


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")
def test_torch_casts_and_transforms_nothing_by_itself() -> None:
    x = torch.randn(3)
    added(x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert added(x, x).dtype == torch.float32
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(3))
        tangent = forward_ad.unpack_dual(added(dual, x)).tangent
    torch.testing.assert_close(tangent, 2 * x)
    torch.testing.assert_close(torch.func.jvp(added, (x, x), (x, x))[1], 2 * x * x + x)


def test_modes_of_torch_see_the_operators(general: list[str]) -> None:
    x = torch.randn(3)
    expected = scaled(x)
    scaled(x)
    general.clear()
    with FakeTensorMode() as mode:
        fake = scaled(mode.from_tensor(x))
    assert isinstance(fake, FakeTensor)
    assert general == ["scaled"]
    torch.testing.assert_close(scaled(x), expected)
    assert general == ["scaled"]


def test_a_captured_name_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(3)
    for factor in (2.0, 3.0, 4.0, 5.0):
        monkeypatch.setitem(globals(), "scale", factor)
        for _ in range(2):
            torch.testing.assert_close(scaled(x), x * factor)


def test_options_and_registrations_count(general: list[str]) -> None:
    @relay
    def curved(x: Tensor[Float, (N,)]):
        return relay.tanh(x)

    x = torch.randn(3)
    expected = curved(x)
    with options(lowering="evaluator"):
        torch.testing.assert_close(curved(x), expected)
        assert len(general) == 2
    with dispatch.register(relay.tanh, (), lambda x: x):
        torch.testing.assert_close(curved(x), x)
    torch.testing.assert_close(curved(x), expected)
    general.clear()
    torch.testing.assert_close(curved(x), expected)
    assert not general


def test_numbers_and_results_that_share_storage() -> None:
    @relay
    def counted(n: Int) -> Int:
        return n + 1

    @relay
    def kept(x: Tensor[Float, (N, M)]):
        return relay.transpose(x, 0, 1)

    x = torch.randn(2, 3)
    for _ in range(3):
        assert counted(2) == 3
        assert counted(torch.tensor(4)) == 5
        kept(x).zero_()
        assert bool(x.any())
    with pytest.raises(RunError, match="64 bits"):
        counted(2**63 - 1)


@pytest.mark.parametrize("lowering", ["evaluator", "torch", "c"])
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(Int, -(2**63), 2**63 - 1), (int32, -(2**31), 2**31 - 1), (uint8, 0, 255)],
)
def test_integers_that_do_not_fit_are_refused_in_later_calls_too(
    dtype: Any, low: int, high: int, lowering: str
) -> None:
    @relay
    def same(n: dtype):  # pyright: ignore[reportInvalidTypeForm]
        return n

    with options(lowering=lowering):
        for _ in range(3):
            assert [same(n).item() for n in (3, low, high)] == [3, low, high]
        for n in (low - 1, high + 1, 2**64, -(2**64)):
            with pytest.raises(RunError, match=rf"`same` got the int {n} as `n`"):
                same(n)


def test_numbers_are_tensors_of_floats(general: list[str]) -> None:
    @relay
    def times(x: Tensor[Float, (N,)], factor: Float):
        return x * factor

    @relay
    def one() -> Float:
        return 1.0

    x = torch.randn(3)
    for factor in (2.0, 3.0, torch.tensor(4.0), 5, 6):
        torch.testing.assert_close(times(x, factor), x * factor)
        assert one() == 1
    assert general == ["times", "one", "times", "times"]
    with pytest.raises(RunError, match="got the bool True as `factor`"):
        times(x, True)
    with pytest.raises(RunError, match="does not fit into 32 bits"):
        times(x, 10**400)
    leaf = torch.tensor(2.0, requires_grad=True)
    times(x, leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, x.sum())


def test_arguments_by_name_and_defaults(general: list[str]) -> None:
    @relay
    def times(x: Tensor[Float, (N,)], factor: float = 2.0, more: int = 1):
        return x * factor + more

    x = torch.randn(3)
    for _ in range(2):
        torch.testing.assert_close(times(x), x * 2 + 1)
        torch.testing.assert_close(times(factor=3.0, x=x), x * 3 + 1)
        torch.testing.assert_close(times(x, more=4), x * 2 + 4)
    assert general == ["times"]


def test_a_failure_has_its_place() -> None:
    @relay
    def taken(x: Tensor[Float, (N,)], i: Int) -> Float:
        return x[i]

    x = torch.randn(3)
    for _ in range(2):
        assert taken(x, 1) == x[1]
    for _ in range(2):
        with pytest.raises(RunError, match=r"x\[i\]"):
            taken(x, 7)
    assert torch.is_grad_enabled()
