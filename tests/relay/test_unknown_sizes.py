"""Sizes `?` in Relay's text: another number in each call, and broadcast while the program runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import RunError, relay
from tests.relay.reading import HEADER

CONCATENATION = """
def @main(%start: int32) {
  let %while_loop = fn (%i: int32, %st: Tensor[(?, 1), int32]) {
    if (min(less(%i, 10))) {
      %while_loop(add(%i, 1), concatenate((%st, reshape(%i, newshape=[1, 1])), axis=0))
    } else {
      (%i, %st)
    }
  };
  let %r = %while_loop(%start, reshape(0, newshape=[1, 1]));
  %r.1
}
"""
"""The loop of `test_recursive_concat` of TVM's `test_any.py`."""


def agree(main: Any, *args: Any) -> Any:
    """Return the value of a function, the same compiled and in the reference evaluator."""
    found = main(*args)
    torch.testing.assert_close(main.interpret(*args), found)
    return found


def main_of(text: str) -> Any:
    return relay.parse(HEADER + text)["main"]


def test_a_loop_grows_a_tensor() -> None:
    found = agree(main_of(CONCATENATION), 0)
    assert found.flatten().tolist() == [0, *range(10)]
    again = relay.parse(relay.parse(HEADER + CONCATENATION).to_json())["main"]
    assert again(3).flatten().tolist() == [0, *range(3, 10)]


def test_a_loop_captures_what_is_around_it() -> None:
    main = main_of("""
    def @main(%n: int32, %row: Tensor[(1, 3), float32]) {
      let %grow = fn (%i: int32, %x: Tensor[(?, 3), float32]) {
        if (%i < %n) { %grow(%i + 1, concatenate((%x, %row * 2f), axis=0)) } else { sum(%x) }
      };
      %grow(0, %row)
    }
    """)
    row = torch.tensor([[1.0, 2.0, 3.0]])
    assert agree(main, 4, row) == 54.0
    torch.testing.assert_close(relay.grad(main, wrt="row")(4, row), torch.full((1, 3), 9.0))


def test_a_local_function_takes_another_size_in_each_call() -> None:
    main = main_of("""
    def @main(%x: Tensor[(4, 3), float32]) {
      let %f = fn (%y: Tensor[(?, 3), float32]) { multiply(%y, 2f) };
      let %a = %f(%x);
      (%a, %f(concatenate((%x, %x), axis=0)))
    }
    """)
    x = torch.randn(4, 3)
    torch.testing.assert_close(agree(main, x), (x * 2, torch.cat((x, x)) * 2))


ADDED = """
def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) {
  add(multiply(%x, %x), %y)
}
"""
BESIDE_A_NUMBER = """
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(4, 3), float32]) { multiply(%x, %y) }
"""
THREE = """
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?), float32], %z: Tensor[(?, 1), float32]) {
  where(less(%x, %y), subtract(%x, %z), multiply(%y, %z))
}
"""


@pytest.mark.parametrize("x", [(4, 3), (1, 3)])
@pytest.mark.parametrize("y", [(4, 3), (1, 3)])
def test_unknown_sizes_broadcast(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    a, b = torch.randn(x, requires_grad=True), torch.randn(y, requires_grad=True)
    main = main_of(ADDED)
    torch.testing.assert_close(agree(main, a.detach(), b.detach()), (a * a + b).detach())
    main(a, b).sum().backward()
    found = a.grad, b.grad
    a.grad = b.grad = None
    (a * a + b).sum().backward()
    torch.testing.assert_close(found, (a.grad, b.grad))


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (4, 1), (1, 1)])
def test_an_unknown_size_broadcasts_beside_a_number(shape: tuple[int, ...]) -> None:
    main, x, y = main_of(BESIDE_A_NUMBER), torch.randn(shape), torch.randn(4, 3)
    torch.testing.assert_close(agree(main, x, y), x * y)


@pytest.mark.parametrize("x", [(4, 3), (1, 3), (4, 1)])
@pytest.mark.parametrize("y", [(3,), (1,)])
@pytest.mark.parametrize("z", [(4, 1), (1, 1)])
def test_several_operands_broadcast_with_gradients_of_any_order(
    x: tuple[int, ...], y: tuple[int, ...], z: tuple[int, ...]
) -> None:
    def wanted(x: Any, y: Any, z: Any) -> Any:
        return torch.where(x < y, x - z, y * z)

    main = main_of(THREE)
    args = [torch.randn(s, dtype=torch.float32, requires_grad=True) for s in (x, y, z)]
    plain = [a.detach() for a in args]
    torch.testing.assert_close(agree(main, *plain), wanted(*plain))

    def second(f: Any) -> Any:
        first = torch.autograd.grad((f(*args) ** 2).sum(), args, create_graph=True)
        return torch.autograd.grad(torch.stack([(g * g).sum() for g in first]).sum(), args)

    torch.testing.assert_close(second(main), second(wanted))


PRODUCTS = """
def @main(%x: Tensor[(?, 2, 3), float32], %y: Tensor[(?, 4, 3), float32]) {
  nn.batch_matmul(multiply(%x, %x), %y, transpose_b=True)
}
"""


@pytest.mark.parametrize("sizes", [(1, 4), (4, 1), (3, 3), (1, 1)])
def test_unknown_batches_of_products_broadcast(sizes: tuple[int, int]) -> None:
    x = torch.randn(sizes[0], 2, 3, requires_grad=True)
    y = torch.randn(sizes[1], 4, 3, requires_grad=True)
    main, plain = main_of(PRODUCTS), (x.detach(), y.detach())
    wanted = x * x @ y.mT
    torch.testing.assert_close(agree(main, *plain), wanted.detach())
    found = torch.autograd.grad((main(x, y) ** 2).sum(), (x, y))
    torch.testing.assert_close(found, torch.autograd.grad((wanted**2).sum(), (x, y)))


def test_batches_of_products_that_do_not_broadcast_stop_the_program() -> None:
    with pytest.raises(RunError, match="2 and 3"):
        main_of(PRODUCTS)(torch.ones(2, 2, 3), torch.ones(3, 4, 3))


@pytest.mark.parametrize("shapes", [((2, 3), (4, 3)), ((4, 3), (2, 3))])
def test_sizes_that_do_not_broadcast_stop_the_program(shapes: Any) -> None:
    main, (a, b) = main_of(ADDED), map(torch.ones, shapes)
    for call in (main, main.interpret):
        with pytest.raises(RunError, match=r"are not equal|2 is not 4|4 is not 2|2 and 4|4 and 2"):
            call(a, b)
    with pytest.raises(RunError):
        main_of(BESIDE_A_NUMBER)(torch.ones(2, 3), torch.ones(4, 3))


def test_what_a_loop_carries_has_one_size() -> None:
    main = main_of("""
    def @main(%n: int32, %x: Tensor[(?), float32], %y: Tensor[(?), float32]) {
      let %loop = fn (%i: int32, %acc) { if (%i < %n) { %loop(%i + 1, %acc + %y) } else { %acc } };
      %loop(0, zeros_like(%x))
    }
    """)
    assert agree(main, 3, torch.ones(2), torch.ones(2)).tolist() == [3.0, 3.0]
    with pytest.raises(RunError):
        main(3, torch.ones(1), torch.ones(2))
