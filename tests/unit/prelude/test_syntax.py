"""Python's syntax on lists means in a program what it means in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay
from pyrelay.prelude import Cons, Nil

N = Dim("N")


@relay
def indexed(x: Float, n: Int) -> Float:
    xs = Cons(x, Cons(2 * x, Cons(3 * x, Nil())))
    return xs[n] - xs[-1] * len(xs)


@relay
def joined(x: Tensor[Float, (N, 3)], n: Int) -> Tensor[Float, (3,)]:
    xs = relay.map(relay.tanh, Cons(x[0], Cons(x[1], Nil())))
    ys = xs + xs[n:]
    return ys[0] + sum(ys) * len(ys)


def joined_in_python(x: Any, n: int) -> Any:
    xs = [torch.tanh(x[0]), torch.tanh(x[1])]
    ys = xs + xs[n:]
    return ys[0] + sum(ys) * len(ys)


@relay
def looped(x: Tensor[Float, (N, 3)], n: Int) -> Tensor[Float, (3,)]:
    xs = relay.map(relay.tanh, Cons(x[0], Cons(2.0 * x[1], Nil())))
    t = relay.zeros(3)
    for a in xs:
        t = t * 2 + a
    for i, a in enumerate(reversed(xs), 1):
        t = t * 2 + a * i
    for a, b in zip(xs, x, strict=True):
        if b[0] > 0.9:
            continue
        t = t * 2 + a * b
    rows = x + 1
    for row in rows:
        t = t + row
        if n > 0:
            break
    for a, k in zip(xs, range(n)):  # noqa: B905
        t = t - a * k
    return t


@relay
def early(x: Float, n: Int) -> Float:
    for place, a in enumerate(relay.map(relay.sin, Cons(x, Cons(2 * x, Nil())))):
        if place == n:
            return a
    return -x


@relay
def replaced(x: Float, n: Int) -> Float:
    xs = Cons(x, Cons(2 * x, Cons(3 * x, Nil())))
    xs[n] = x * x
    xs[0] += 1.0
    return xs[0] + 10 * xs[1] + 100 * xs[2]


def replaced_in_python(x: Any, n: int) -> Any:
    xs = [x, 2 * x, 3 * x]
    xs[n] = x * x
    xs[0] = xs[0] + 1.0
    return xs[0] + 10 * xs[1] + 100 * xs[2]


@relay
def collected(x: Tensor[Float, (N, 3)], n: Int) -> Tensor[Float, (3,)]:
    xs = [a * 2 for a in x if a[0] > 0.0]
    ys = [a * b[0] + i for a in xs for i, b in enumerate(xs) if i < n]
    zs = []
    for i in range(n):
        zs.append(x[0] * i)
        if i > 1:
            zs.append(zs[-1] * len(zs))
    zs += ys
    zs.append(x[1])
    t = relay.zeros(3)
    for z in zs:
        t = t * 0.5 + z
    return t * len(zs) + zs[-1] + zs[0]


@relay
def copied(x: Float, n: Int) -> Float:
    found = list()  # noqa: C408  as people write it
    for v in list(range(n)):
        found.append(x * v)
        found.append(found[-1] + len(found))
    nested = [[x * i, x] for i in range(3)]

    def grow(y):
        inside = [y]
        for pair in nested:
            inside.append(pair[0])  # noqa: PERF401
        return sum(inside)

    for item in [x, 2 * x]:
        found.append(grow(item))  # noqa: PERF401
    return sum(found) + sum([pair[0] * pair[1] for pair in nested])


SCALAR = torch.tensor(0.7)
ROWS = torch.tensor([[0.1, -0.4, 0.3], [0.95, 0.2, -0.6]])

PROGRAMS: Sequence[tuple[Any, Callable[..., Any], torch.Tensor, Sequence[int]]] = [
    (indexed, indexed.__wrapped__, SCALAR, (0, 1, 2, -1, -3)),
    (joined, joined_in_python, ROWS, (0, 1, 2, -1, 5)),
    (looped, looped.__wrapped__, ROWS, (0, 1, 3)),
    (early, early.__wrapped__, SCALAR, (0, 1, 2)),
    (collected, collected.__wrapped__, ROWS, (0, 1, 2, 4)),
    (copied, copied.__wrapped__, SCALAR, (0, 3)),
    (replaced, replaced_in_python, SCALAR, (0, 1, -1)),
]

each_program = pytest.mark.parametrize(
    ("function", "python", "x", "numbers"), PROGRAMS, ids=lambda p: getattr(p, "__name__", "")
)


@each_program
def test_values_are_pythons(
    function: Any, python: Callable[..., Any], x: torch.Tensor, numbers: Sequence[int]
) -> None:
    for n in numbers:
        torch.testing.assert_close(function(x, n), python(x, n))
        torch.testing.assert_close(function.interpret(x, n), python(x, n))


@each_program
def test_gradients_are_torchs(
    function: Any, python: Callable[..., Any], x: torch.Tensor, numbers: Sequence[int]
) -> None:
    for n in numbers:
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        function(ours, n).sum().backward()
        python(theirs, n).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("function", [indexed, replaced])
def test_an_index_out_of_range_is_the_users_mistake(function: Any) -> None:
    for run in (function, function.interpret):
        with pytest.raises(RunError) as caught:
            run(SCALAR, 3)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "RL502"
        assert diagnostic.notes == ("index 3 of a list of length 3",)
        assert diagnostic.primary is not None
        assert diagnostic.primary.span.text == "xs[n]"


def test_slices_are_pythons() -> None:
    @relay
    def ends(start: Int, stop: Int, step: Int) -> Int:
        xs = Cons(1, Cons(2, Cons(3, Cons(4, Cons(5, Nil())))))
        total = 0
        for x in xs[start:stop:step]:
            total = total * 10 + x
        return total

    for start in range(-7, 8):
        for stop in (-6, -2, 0, 1, 3, 5, 9):
            for step in (-3, -2, -1, 1, 2, 6):
                wanted = "".join(str(n) for n in [1, 2, 3, 4, 5][start:stop:step])
                assert int(ends(start, stop, step)) == int(wanted or 0), (start, stop, step)
    with pytest.raises(RunError, match="the step of a slice is 0"):
        ends(0, 1, 0)


def test_what_is_left_out_of_a_slice() -> None:
    @relay
    def first(x: Float) -> Float:
        xs = Cons(x, Cons(2 * x, Cons(3 * x, Nil())))
        return xs[:2][0] + 10 * xs[1:][0] + 100 * xs[:][0] + 1000 * xs[::-1][0]

    @relay
    def last(x: Float) -> Float:
        xs = Cons(x, Cons(2 * x, Cons(3 * x, Nil())))
        return xs[-2:][0] + 10 * xs[:-1][-1] + 100 * xs[::2][1]

    one = torch.tensor(1.0)
    assert float(first(one)) == 1 + 20 + 100 + 3000
    assert float(last(one)) == 2 + 20 + 300
