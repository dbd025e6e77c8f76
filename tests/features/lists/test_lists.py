"""Lists as Python has them: each program, compiled, gives what plain Python gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, Int, RunError, Tensor, relay
from pyrelay.config import options


def takes_and_puts(xs: list[float]) -> tuple[float, list[float]]:
    stack = list(xs)
    stack.append(stack.pop() - stack.pop())
    stack.insert(0, 7.0)
    stack.insert(-1, 8.0)
    stack.extend(x * 2.0 for x in xs)
    stack.reverse()
    first = stack.pop(0)
    stack.remove(8.0)
    return first, stack


def replaces_items_of_a_list_that_is_appended_to(xs: list[float]) -> list[float]:
    ys = [1.0, 2.0, 3.0]
    ys.append(4.0)
    ys[0] = 9.0
    ys[-1] += 1.0
    ys[1], ys[2] = ys[2], ys[1]
    return ys


def goes_on_with_a_slice(xs: Sequence[float]) -> list[float]:
    stack = [1.0, 2.0]
    for x in xs:
        top = stack[-1]
        stack = stack[:-1]
        stack.append(top + x)
        stack.append(x)
    return stack


def searches(xs: list[float]) -> tuple[int, int, bool, bool, bool]:
    is_small = any(x < 1.5 for x in xs)
    pairs = all(x + y > 1.0 for x in xs for y in xs if x > y)
    return xs.index(2.0), xs.count(1.0), is_small, pairs, 3.0 in xs


def orders(
    xs: list[float],
) -> tuple[list[float], list[float], list[tuple[float, int]], float, float]:
    ranked = sorted(((x % 2.0, i) for i, x in enumerate(xs)), reverse=True)
    ys = list(xs)
    ys.sort(key=lambda x: -x)
    best = max(xs, key=lambda x: (x % 2.0, x))
    return sorted(xs), ys, ranked, best, min([x for x in xs if x > 9.0], default=5.0)


def grows_two_lists_at_once(xs: list[float]) -> tuple[list[float], list[int]]:
    ys, ns = [], []
    for i, x in enumerate(xs):
        ys.append(x)
        ns.append(i)
    return ys, ns * 2


def runs_a_queue(n: int) -> tuple[int, int]:
    queue = [1]
    total = 0
    while queue and total < 100:
        k = queue.pop(0)
        total += k
        if k < n:
            queue.append(k + 1)
            queue.append(k + 2)
    return total, len(queue)


def takes_from_a_parameter_that_is_copied(xs: list[float]) -> tuple[float, list[float]]:
    xs = list(xs)
    last = xs.pop()
    return last, xs


def unpacks(xs: list[float]) -> float:
    a, b, c = xs
    (d, e), f = [a, b], c
    shifted = list(map(abs, [d, e, f]))
    return sum(x * y for x, y in zip([a, b, c], shifted, strict=True))


XS = [3.0, 1.0, 2.0]
CASES: list[tuple[Callable[..., Any], Any]] = [
    (takes_and_puts, XS),
    (replaces_items_of_a_list_that_is_appended_to, XS),
    (goes_on_with_a_slice, XS),
    (searches, XS),
    (orders, XS),
    (grows_two_lists_at_once, XS),
    (runs_a_queue, 5),
    (takes_from_a_parameter_that_is_copied, XS),
    (unpacks, XS),
]


def plain(value: Any) -> Any:
    """Return a result with tensors as numbers and lists as Python's own."""
    if isinstance(value, torch.Tensor):
        return value.item()
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return [plain(v) for v in value] if hasattr(value, "__iter__") else value


@pytest.mark.parametrize(("function", "argument"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_a_program_with_lists_gives_what_python_gives(
    function: Callable[..., Any], argument: Any
) -> None:
    wanted = function(argument)
    compiled = relay(function)
    assert plain(compiled(argument)) == wanted
    with options(lowering="evaluator"):
        assert plain(relay(function)(argument)) == wanted


@relay
def stacked(xs: list[Float]) -> Float:
    stack = [1.0]
    for x in xs:
        stack.append(stack.pop() * x)
        stack.append(x)
    ranked = sorted(stack, key=lambda v: -v)
    best = ranked[0]
    return best * best + sum(stack) if stack else best


def test_gradients_go_through_lists_that_change() -> None:
    xs = [torch.tensor(v, requires_grad=True) for v in (3.0, 1.0, 2.0)]
    stack = [torch.tensor(1.0)]
    for x in xs:
        stack.append(stack.pop() * x)
        stack.append(x)
    ranked = sorted(stack, key=lambda v: -v)
    loss = ranked[0] * ranked[0] + sum(stack)
    wanted = torch.autograd.grad(loss, xs)
    found = relay.grad(stacked)([x.detach() for x in xs])
    torch.testing.assert_close(list(found), list(wanted))


@relay
def two_keys(key: Tensor[Int, (2,)]) -> tuple[Float, Float]:
    first, second = relay.random_split(key)
    return relay.normal(first), relay.normal(second)


def test_a_tensor_of_known_first_size_is_unpacked() -> None:
    key = relay.random_key(3)
    rows = relay.random_split(key)
    assert two_keys(key) == (relay.normal(rows[0]), relay.normal(rows[1]))


@relay
def emptied(n: int) -> int:
    stack = [n]
    stack.pop()
    return stack.pop()


@relay
def counted_to_two(xs: list[Float]) -> Float:
    a, b = xs
    return a + b


def test_taking_from_an_empty_list_and_unpacking_another_length_stop_the_program() -> None:
    with pytest.raises(RunError, match="the list is empty"):
        emptied(1)
    for length, elements in ((0, "0 elements"), (1, "1 element"), (5, "more than 2 elements")):
        with pytest.raises(RunError, match=f"a list of {elements} cannot be unpacked into 2 names"):
            counted_to_two([1.0] * length)


@relay
def aliased(xs: list[Float]) -> list[Float]:
    ys = list(xs)
    zs = ys
    ys.pop()
    return zs


def test_a_list_that_another_name_holds_is_not_changed() -> None:
    with pytest.raises(CheckError, match="may have an alias"):
        aliased.check()
