"""Gradients through algebraic data types: trees, lists, options, and of whole data values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module
from tests.unit.passes.grad.programs import assert_close, expanded, scalar, vector

TREE = """
type Tree[D: Dim] { Leaf(Tensor[(D,), float64]), Node(Tree[D], Tree[D], int64) }
def @fold[D: Dim](%t: Tree[D], %w: Tensor[(D,), float64]) -> Tensor[(D,), float64] {
  match (%t) {
    Leaf(%x) => tanh(%w * %x),
    Node(%l, %r, _) => {
      let %a = @fold(%l, %w); let %b = @fold(%r, %w); tanh(%w * %a * %b) } } }
def @square[D: Dim](%t: Tree[D]) -> float64 {
  match (%t) { Leaf(%x) => sum(%x * %x), Node(%l, %r, _) => @square(%l) + @square(%r) } }
"""
PARAMS = "%t: Tree[D], %w: Tensor[(D,), float64]"


def leaf(*values: float) -> Any:
    return (0, vector(*values))


def node(left: Any, right: Any, number: int) -> Any:
    return (1, left, right, number)


SAMPLE = node(node(leaf(0.1, 0.9), leaf(-0.4, 0.3), 7), leaf(0.5, 0.6), 8)
WEIGHT = vector(0.7, -1.2)


def tracked(value: Any, found: list[torch.Tensor]) -> Any:
    """Return a copy whose float tensors are collected, and recorded by autograd."""
    if isinstance(value, tuple):
        return tuple(tracked(v, found) for v in value)
    if isinstance(value, torch.Tensor):
        found.append(value.clone().requires_grad_())
        return found[-1]
    return value


def gradient_like(value: Any, gradients: list[torch.Tensor], *, top: bool = True) -> Any:
    """Return data with the gradients in place of its tensors, zeros for numbers but the tag."""
    if isinstance(value, tuple):
        rest = tuple(gradient_like(v, gradients) for v in value[1:])
        return (value[0], *rest)
    if isinstance(value, torch.Tensor):
        return gradients.pop(0)
    return 0


def check_data(text: str, *args: Any) -> None:
    """Check `@main`, the gradient of `@f` for all parameters, and `@again`, of its norm."""
    module = expanded(text)
    found: list[torch.Tensor] = []
    inputs = [tracked(a, found) for a in args]
    loss = evaluate(module, "f", inputs, grad=True)
    if not loss.requires_grad:
        loss = loss + 0 * found[0].sum()
    first = list(torch.autograd.grad(loss, found, create_graph=True, materialize_grads=True))
    expected = list(first)
    wanted = tuple(gradient_like(a, expected) for a in args)
    assert_close(evaluate(module, "main", args), wanted)
    norm = sum((g * g).sum() for g in first)
    assert isinstance(norm, torch.Tensor)
    if not norm.requires_grad:
        norm = norm + 0 * found[0].sum()
    second = list(torch.autograd.grad(norm, found, materialize_grads=True))
    assert_close(evaluate(module, "again", args), tuple(gradient_like(a, second) for a in args))


def test_a_fold_over_a_tree_is_differentiated_with_respect_to_weights_and_tree() -> None:
    text = (
        TREE
        + f"""
    def @f[D: Dim]({PARAMS}) -> float64 {{ sum(@fold(%t, %w)) }}
    def @main[D: Dim]({PARAMS}) {{ let %g = grad(@f); %g(%t, %w) }}
    def @norm[D: Dim]({PARAMS}) -> float64 {{
      let %r = @main(%t, %w); let %a = %r.1; sum(%a * %a) + @square(%r.0) }}
    def @again[D: Dim]({PARAMS}) {{ let %g = grad(@norm); %g(%t, %w) }}
    """
    )
    check_data(text, SAMPLE, WEIGHT)
    check_data(text, leaf(0.4, 0.2), WEIGHT)


def test_a_tree_that_is_built_and_used_twice_is_differentiated() -> None:
    params = "%x: Tensor[(D,), float64], %w: Tensor[(D,), float64]"
    text = (
        TREE
        + f"""
    def @grow[D: Dim](%n: int64, %x: Tensor[(D,), float64]) -> Tree[D] {{
      if (%n < 1) {{ Leaf(%x) }} else {{
        let %l = @grow(%n - 1, sin(%x)); let %k = Node(%l, %l, %n);
        if (%n == 2) {{ %k }} else {{ Node(%k, Leaf(%x * %x), 0) }} }} }}
    def @f[D: Dim]({params}) -> float64 {{
      let %t = @grow(3, %x); sum(@fold(%t, %w)) * @square(%t) }}
    def @main[D: Dim]({params}) {{ let %g = grad(@f); %g(%x, %w) }}
    def @norm[D: Dim]({params}) -> float64 {{
      let %r = @main(%x, %w); let %a = %r.1; let %b = %r.0; sum(%a * %a) + sum(%b * %b) }}
    def @again[D: Dim]({params}) {{ let %g = grad(@norm); %g(%x, %w) }}
    """
    )
    module = expanded(text)
    args = (vector(0.3, -0.6), WEIGHT)
    leaves = [a.clone().requires_grad_() for a in args]
    loss = evaluate(module, "f", leaves, grad=True)
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    assert_close(evaluate(module, "main", args), first)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), leaves)  # type: ignore[arg-type]
    assert_close(evaluate(module, "again", args), second)


LIST = """
type List[T] { Nil, Cons(T, List[T]) }
def @total(%xs: List[float64], %s: float64) -> float64 {
  match (%xs) { Nil => %s, Cons(%h, %t) => @total(%t, sin(%s) * %h + %h) } }
"""


def listed(*values: Any) -> Any:
    """Return a list value."""
    found: Any = (0,)
    for value in reversed(values):
        found = (1, value, found)
    return found


def test_a_loop_over_a_list_is_differentiated_with_respect_to_the_list() -> None:
    params = "%xs: List[float64], %s: float64"
    text = (
        LIST
        + f"""
    def @squares(%xs: List[float64]) -> float64 {{
      match (%xs) {{ Nil => 0.0f64, Cons(%h, %t) => %h * %h + @squares(%t) }} }}
    def @f({params}) -> float64 {{ @total(%xs, %s) }}
    def @main({params}) {{ let %g = grad(@f); %g(%xs, %s) }}
    def @norm({params}) -> float64 {{
      let %r = @main(%xs, %s); let %a = %r.1; @squares(%r.0) + %a * %a }}
    def @again({params}) {{ let %g = grad(@norm); %g(%xs, %s) }}
    """
    )
    check_data(text, listed(scalar(0.3), scalar(-0.8), scalar(1.2)), scalar(0.4))
    check_data(text, listed(), scalar(0.4))


SOME = """#[pyrelay = "1", typed]
type Some { Empty, Filled(Tensor[(K,), float64], Tensor[(K, 2), float64], Some) }
def @f(%s: Some, %x: float64) -> float64 {
  match (%s) {
    Filled(_, %b: Tensor[(K_1, 2), float64], Filled(%a: Tensor[(K_2,), float64], _, _)) => {
      let %m: float64 = sum(%a);
      let %n: float64 = sum(%b);
      let %p: float64 = multiply(%m, %n);
      let %q: float64 = multiply(%p, %x);
      %q
    },
    _ => { %x },
  }
}
def @main(%s: Some, %x: float64) -> (Some, float64) {
  let %g: fn (Some, float64) -> (Some, float64) = grad{wrt=(0, 1), single=False}(@f);
  %g(%s, %x)
}
def @norm(%s: Some, %x: float64) -> float64 {
  let %r: (Some, float64) = @main(%s, %x);
  let %t: Some = %r.0;
  let %v: float64 = %r.1;
  @f(%t, %v)
}
def @again(%s: Some, %x: float64) -> (Some, float64) {
  let %g: fn (Some, float64) -> (Some, float64) = grad{wrt=(0, 1), single=False}(@norm);
  %g(%s, %x)
}
"""


def test_parts_of_data_that_are_not_used_get_zeros_of_their_own_sizes() -> None:
    ones = torch.ones(3, 2, dtype=torch.float64)
    value = (1, vector(1, 2, 3), ones, (1, vector(4, 5), ones[:2], (0,)))
    slopes = (1, vector(0, 0, 0), ones * 18, (1, vector(12, 12), ones[:2] * 0, (0,)))
    module = expand_transforms(parse_module(SOME))
    verify(module, Stage.DERIVED)
    assert_close(evaluate(module, "main", (value, scalar(2.0))), (slopes, scalar(54.0)))
    small = (1, vector(1), ones[:1], (0,))
    zero = (1, vector(0), ones[:1] * 0, (0,))
    assert_close(evaluate(module, "main", (small, scalar(2.0))), (zero, scalar(1.0)))


def test_unused_parts_keep_their_sizes_at_second_order() -> None:
    ones = torch.ones(3, 2, dtype=torch.float64)
    value = (1, vector(1, 2, 3), ones, (1, vector(4, 5), ones[:2], (0,)))
    module = expand_transforms(parse_module(SOME))
    # With A and B the sums: the norm is (2 B x) (6 A x) (A B).
    a, b, x = 9.0, 6.0, 2.0
    slopes = (
        1,
        vector(0, 0, 0),
        ones * (24 * a * a * b * x * x),
        (1, vector(24 * a * b * b * x * x, 24 * a * b * b * x * x), ones[:2] * 0, (0,)),
    )
    got = evaluate(module, "again", (value, scalar(x)))
    assert_close(got, (slopes, scalar(24 * a * a * b * b * x)))


def test_a_pullback_takes_and_gives_data() -> None:
    text = (
        TREE
        + f"""
    def @scale[D: Dim](%t: Tree[D], %w: Tensor[(D,), float64]) -> Tree[D] {{
      match (%t) {{
        Leaf(%x) => Leaf(%x * %x * %w),
        Node(%l, %r, %n) => Node(@scale(%l, %w), @scale(%r, %w), %n) }} }}
    def @main[D: Dim]({PARAMS}, %ct: Tree[D]) {{
      let %v = vjp(@scale)(%t, %w); let %pull = %v.1; (%v.0, %pull(%ct)) }}
    """
    )
    tree = node(leaf(1, 2), leaf(3, 4), 5)
    ct = node(leaf(1, 0), leaf(10, 1), 99)
    w = vector(2, 3)
    value, (tree_slope, w_slope) = evaluate(expanded(text), "main", (tree, w, ct))
    assert_close(value, node(leaf(2, 12), leaf(18, 48), 5))
    assert_close(tree_slope, node(leaf(4, 0), leaf(120, 24), 0))
    assert_close(w_slope, vector(91, 16))


@pytest.mark.parametrize("count", [10, 3000])
def test_deep_data_is_differentiated(count: int) -> None:
    text = (
        LIST
        + """
    def @sum(%xs: List[float64]) -> float64 {
      match (%xs) { Nil => 0.0f64, Cons(%h, %t) => { let %r = @sum(%t); %h * %h + %r } } }
    def @main(%xs: List[float64]) { let %g = grad(@sum); %g(%xs) }
    """
    )
    got = evaluate(expanded(text), "main", (listed(*map(scalar, range(count))),))
    for index in range(count):
        tag, head, got = got
        assert tag == 1
        assert float(head) == 2 * index
    assert got == (0,)
