"""`relay.set_at(x, index, value)`, the index as it stands in brackets; and what RL114 suggests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.prelude import List
from tests.python_text import load

N, K = Dim("N"), Dim("K")


@relay
def with_each(x: Tensor[Float, (4, N)], i: Int, mask: Tensor[Int, (N,)]) -> Tensor[Float, (4, N)]:
    x = relay.set_at(x, 0, 5.0)
    x = relay.set_at(x, (1, slice(1, None)), x[2, :-1])
    x = relay.set_at(x, (..., -1), relay.cast(i, relay.float32))
    x = relay.set_at(value=relay.sin(x[:, 1]), input=x, index=(slice(None, None), 0))
    return relay.set_at(relay.set_at(x, (i, slice(0, None, 2)), 7.0), (2, mask), -1.0)


@relay
def with_element(xs: List[Float], i: Int) -> List[Float]:
    return relay.set_at(xs, i, 2.0)


def test_the_index_is_what_stands_in_brackets() -> None:
    x, mask = torch.rand(4, 5), torch.tensor([1, 1, 3, 0, 4])
    wanted = x.clone()
    wanted[0] = 5.0
    wanted[1, 1:] = wanted[2, :-1].clone()
    wanted[..., -1] = 3.0
    wanted[:, 0] = wanted[:, 1].sin()
    wanted[3, 0::2] = 7.0
    wanted[2, mask] = -1.0
    before = x.clone()
    torch.testing.assert_close(with_each(x, 3, mask), wanted)
    torch.testing.assert_close(with_each.interpret(x, 3, mask), wanted)
    assert torch.equal(x, before)


def test_an_element_of_a_list_is_replaced_likewise() -> None:
    assert [float(x) for x in with_element([1.0, 0.0, 3.0], 1)] == [1.0, 2.0, 3.0]


def test_the_gradient_leaves_the_place_out() -> None:
    x = torch.rand(4, 5, dtype=torch.float32)

    @relay
    def loss(x: Tensor[Float, (4, N)]) -> Float:
        return (relay.set_at(x, (0, slice(1, 3)), 2.0 * x[1, 1:3]) ** 2).sum()

    y = x.clone().requires_grad_()
    z = y.clone()
    z[0, 1:3] = 2 * y[1, 1:3]
    (z**2).sum().backward()
    torch.testing.assert_close(relay.grad(loss)(x), y.grad)


SHARED = """
from pyrelay import Float, Int, Tensor, relay

@relay
def f(x: Tensor[Float, (3, 4)], i: Int) -> Tensor[Float, (3, 4)]:
    y = x
    {}
    return x + y
"""
WRITES = (
    "y[0] = 0.0",
    "y[0, 1:3] = x[1, :2]",
    "y[i, ::2] += x[1, ::2] * 2",
    "y[..., -1] *= x[:, 0] + 1",
    "y[:, None, 0] = 3.0",
)


@pytest.mark.parametrize("statement", WRITES)
def test_what_a_refused_write_suggests_does_what_was_meant(statement: str, tmp_path: Path) -> None:
    function = load(SHARED.format(statement), tmp_path)["f"]
    with pytest.raises(CheckError) as caught:
        function.check()
    found = re.search("help: write `(.*)`, which", str(caught.value))
    assert found is not None
    repaired = load(SHARED.format(found[1]), tmp_path)["f"]
    x = torch.arange(12.0).reshape(3, 4)
    scope = {"x": x, "y": x.clone(), "i": 1}
    exec(statement, scope)
    assert torch.equal(repaired(x, 1), x + scope["y"])


def test_a_missing_argument_is_told_by_the_plain_signature() -> None:
    @relay
    def f(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
        return relay.set_at(x, 1)

    with pytest.raises(CheckError, match=r"misses its argument `value`"):
        f.check()


def test_places_written_out_are_an_index() -> None:
    @relay
    def f(x: Tensor[Float, (N, K)], i: int):
        y = x * 1.0
        y[[0, i]] = 5.0
        return x[[0, 2]], x[[i, -1], 1], x[:, [1, 0]], x[[True, False, True]], y

    x = torch.arange(6.0).reshape(3, 2)
    for found, expected in zip(f(x, 1), f.__wrapped__(x, 1), strict=True):
        assert torch.equal(found, expected)

    @relay
    def ends(x: Tensor[Float, (N,)]) -> Float:
        return (x[[0, -1]] ** 2).sum()

    assert relay.grad(ends)(torch.tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 0.0, 6.0]


@relay
def prefix_sums(x: Tensor[Float, (K, N)]) -> Tensor[Float, (K, N)]:
    x = x.clone()
    rows, columns = x.shape
    for i in range(1, x.size(0) * x.ndim // x.dim()):
        x[i] += x[i - 1]
    x[rows - 1, columns - 1] = 0.0
    return x


def test_a_name_of_a_size_is_no_alias() -> None:
    x = torch.rand(3, 2)
    wanted = x.cumsum(dim=0)
    wanted[-1, -1] = 0.0
    torch.testing.assert_close(prefix_sums(x), wanted)
