"""Records and data with numbers of their own are mapped over: a batch is an instance whose tensors
have a dim more, or a list of instances."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Batch, CheckError, Dim, Int, RunError, Tensor, float64, relay

N, M = Dim("N"), Dim("M")
D = float64
Number = Tensor[D, ()]


@dataclass(frozen=True)
class Point:
    x: Number
    y: Number


@dataclass(frozen=True)
class Marked:
    name: str
    point: Point
    count: Int
    row: Tensor[D, (3,)]


@dataclass(frozen=True)
class Leaf:
    value: Number


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def norm(p: Point) -> Number:
    return relay.sqrt(p.x * p.x + p.y * p.y)


@relay
def scaled(p: Point, k: Number) -> Point:
    return Point(p.x * k, p.y * k)


@relay
def marked(m: Marked) -> Marked:
    return Marked(m.name, scaled(m.point, m.row.sum()), m.count + 1, m.row * m.point.x)


@relay
def summed(tree: Tree, w: Number) -> Number:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Node(left, right):
            return summed(left, w) * summed(right, w)


@relay
def turned(p: Point) -> Point:
    if p.x > p.y:
        return Point(p.y, p.x)
    while p.x < 10.0:
        p = Point(p.x * 2.0, p.y)
    return p


@relay
def first_row(points: Batch[Point, N]) -> Tensor[D, (N,)]:
    match points:
        case Point(x, y):
            return x + points.y * y


@relay
def spread(points: Batch[Point, N]) -> Number:
    return relay.vmap(norm)(points).sum() + points.x.prod()


@relay
def made(x: Tensor[D, (N,)], y: Tensor[D, (N,)]) -> Tensor[D, (N,)]:
    points = relay.vmap(Point)(x, y)
    return relay.vmap(norm)(points) + points.x


@relay
def either(p: Point | None, w: Number) -> Number:
    return w if p is None else p.x * w


@relay
def area(points: list[Point]) -> Number:
    total = relay.cast(0.0, D)
    for p in points:
        total = total + p.x * p.y
    return total


def number(x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def point(*values: Any) -> Point:
    x, y = (torch.tensor(v, dtype=torch.float64) for v in values)
    return Point(x, y)


POINTS = point([3.0, 5.0], [4.0, 12.0])
EACH = [point(3.0, 4.0), point(5.0, 12.0)]
TREES = [Node(Leaf(number(v)), Node(Leaf(number(2 * v)), Leaf(number(0.5)))) for v in (1.0, 2.0)]


def same(a: Any, b: Any) -> None:
    """Expect equal data."""
    relay.tree_map(lambda x, y: torch.testing.assert_close(x, y), a, b)


def side_by_side(values: list[Any]) -> Any:
    return relay.tree_map(lambda *each: torch.stack(each), *values)


@pytest.mark.parametrize("points", [POINTS, EACH, tuple(EACH)])
def test_a_batch_is_an_instance_or_a_list_of_instances(points: Any) -> None:
    lengths = torch.tensor([5.0, 13.0], dtype=torch.float64)
    same(relay.vmap(norm)(points), lengths)
    same(relay.vmap(norm).interpret(points), lengths)
    same(relay.vmap(scaled, in_axes=(0, None))(points, number(2.0)), point([6.0, 10], [8.0, 24]))
    assert relay.grad(spread)(points).x.shape == (2,)


def test_numbers_in_lists_are_of_the_declared_dtype() -> None:
    found = relay.vmap(norm)([Point(3, 4.0), point(5.0, 12.0)])
    same(found, torch.tensor([5.0, 13.0], dtype=torch.float64))


def test_a_result_is_a_batch() -> None:
    factors = torch.tensor([1.0, 2.0], dtype=torch.float64)
    found = relay.vmap(scaled, in_axes=(None, 0))(EACH[0], factors)
    same(found, point([3.0, 6.0], [4.0, 8.0]))


def test_records_hold_records_strings_and_integers() -> None:
    rows = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    given = [Marked("a", p, i, r) for i, (p, r) in enumerate(zip(EACH, rows, strict=True))]
    found = relay.vmap(marked)(given)
    assert found.name == "a"
    assert found.count.tolist() == [1, 2]
    each = [marked(m) for m in given]
    same(found.point, side_by_side([e.point for e in each]))
    same(found.row, torch.stack([e.row for e in each]))


def test_recursion_and_its_gradients_go_through_a_batch_of_trees() -> None:
    w = number(0.3)
    mapped = relay.vmap(summed, in_axes=(0, None))
    same(mapped(TREES, w), torch.stack([summed(t, w) for t in TREES]))
    slopes = relay.vmap(relay.grad(summed), in_axes=(0, None))(TREES, w)
    same(slopes, side_by_side([relay.grad(summed)(t, w) for t in TREES]))

    @relay
    def total(trees: Batch[Tree, N], w: Number) -> Number:
        return relay.vmap(summed, in_axes=(0, None))(trees, w).sum()

    whole = side_by_side(TREES)
    of_trees, of_w = relay.grad(total)(whole, w)
    same(of_trees, slopes[0])
    same(of_w, slopes[1].sum())
    product = relay.hvp(total, wrt="w")((whole, w), (number(1.0),))
    each = [relay.hvp(summed, wrt="w")((t, w), (number(1.0),)) for t in TREES]
    same(product, torch.stack(each).sum())


def test_branches_and_loops_differ_between_elements() -> None:
    points = point([1.0, 5.0, 20.0], [2.0, 3.0, 30.0])
    each = [turned(point(x, y)) for x, y in zip(points.x.tolist(), points.y.tolist(), strict=True)]
    same(relay.vmap(turned)(points), side_by_side(each))


def test_a_batch_of_batches() -> None:
    grid = torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)
    found = relay.vmap(relay.vmap(norm))(Point(grid, grid))
    same(found, (2.0 * grid * grid).sqrt())
    rows = [[point(v, v) for v in row] for row in grid.tolist()]
    same(relay.vmap(relay.vmap(norm))(rows), found)
    crossed = relay.vmap(relay.vmap(scaled, in_axes=(None, 0)), in_axes=(0, None))
    same(crossed(POINTS, grid[0]).x, POINTS.x[:, None] * grid[0])

    @relay
    def declared(points: Batch[Point, M, N]) -> Tensor[D, (M, N)]:
        return relay.vmap(relay.vmap(norm))(points)

    same(declared(Point(grid, grid)), found)
    assert "Batch[Batch[Point, N], M]" in declared.type


def test_transforms_around_and_inside() -> None:
    value, slope = relay.vmap(relay.value_and_grad(norm))(POINTS)
    same(slope, side_by_side([relay.grad(norm)(p) for p in EACH]))
    same(relay.jvp(relay.vmap(norm))((POINTS,), (POINTS,)), (value, value))
    pulled = relay.vjp(relay.vmap(norm))(POINTS)[1](torch.ones(2, dtype=torch.float64))
    same(pulled, slope)
    second = relay.vmap(relay.hessian(norm))(POINTS)
    same(second, side_by_side([relay.hessian(norm)(p) for p in EACH]))
    whole = relay.hessian(spread)(POINTS)
    assert whole[0][1].shape == (2, 2)


def test_a_program_makes_batches_and_takes_them_apart() -> None:
    same(made(POINTS.x, POINTS.y), torch.tensor([8.0, 18.0], dtype=torch.float64))
    same(first_row(POINTS), POINTS.x + POINTS.y * POINTS.y)
    same(first_row.interpret(POINTS), POINTS.x + POINTS.y * POINTS.y)


def test_optionals_and_lists_of_records() -> None:
    same(relay.vmap(either, in_axes=(0, None))(POINTS, number(2.0)), 2.0 * POINTS.x)
    same(relay.vmap(either)(None, POINTS.x), POINTS.x)
    same(relay.vmap(area)([POINTS, POINTS]), 2.0 * POINTS.x * POINTS.y)


def test_instances_in_a_list_join_torchs_graph() -> None:
    x = number(3.0).requires_grad_()
    relay.vmap(norm)([Point(x, number(4.0)), EACH[1]]).sum().backward()
    assert x.grad is not None
    same(x.grad, number(0.6))


def test_the_text_and_the_python_of_a_batch_compile_again(tmp_path: Path) -> None:
    again = relay.parse(first_row.show("typed"))
    cls = again.classes["Point"]
    same(again["first_row"](cls(POINTS.x, POINTS.y)), first_row(POINTS))
    assert str(relay.parse(again.to_json())) == str(again)
    file = tmp_path / "again.py"
    call = "print(first_row(Point(torch.ones(2).double(), torch.ones(2).double())).tolist())"
    file.write_text(f"{first_row.show('python')}\nimport torch\n{call}\n")
    made = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert made.stdout == "[2.0, 2.0]\n", made.stderr


def test_what_cannot_lie_side_by_side_is_refused() -> None:
    names = [Marked(n, EACH[0], 1, torch.ones(3, dtype=torch.float64)) for n in "ab"]
    with pytest.raises(RunError, match="the str 'a' is the same for all"):
        relay.vmap(marked)(names)
    with pytest.raises(RunError, match="some are Leaf and some Node"):
        relay.vmap(summed, in_axes=(0, None))([TREES[0], Leaf(number(1.0))], number(1.0))
    with pytest.raises(RunError, match="cast it"):
        relay.vmap(marked)([Marked("a", EACH[0], 1.5, torch.ones(3).double())] * 2)
    with pytest.raises(CheckError, match="write axis 0 for data"):
        relay.vmap(norm, in_axes=1)(POINTS)
