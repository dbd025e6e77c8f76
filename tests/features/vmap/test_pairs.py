"""Batches of batches in which elements go different ways have the values of nested loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, float64, relay
from tests.features.vmap import test_axes as axes
from tests.features.vmap import test_programs as programs
from tests.features.vmap import test_structures as structures
from tests.features.vmap.test_counts import count_of

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N, M, K = Dim("N"), Dim("M"), Dim("K")
D = float64
Number = Tensor[D, ()]
XS = torch.tensor([[0.4, -1.3, 1.7], [-0.2, 2.6, 0.9]], dtype=torch.float64)
NS = torch.tensor([[0, 1, 2], [3, 1, 0]])

OF_NUMBERS = [programs.branch, programs.steps, programs.cells]
QUICK = [structures.optional, structures.record, structures.enumerated, structures.trips]
LARGE = [pytest.param(f, marks=pytest.mark.slow) for f in structures.PROGRAMS if f not in QUICK]


def names(f: Any) -> str:
    return f.__name__


def looped(f: Any, *columns: torch.Tensor) -> torch.Tensor:
    """Return what a function gives for each pair, by nested loops."""
    rows = zip(*columns, strict=True)
    return torch.stack(
        [torch.stack([torch.as_tensor(f(*each)) for each in zip(*r, strict=True)]) for r in rows]
    )


def twice(f: Any) -> Any:
    return relay.vmap(relay.vmap(f))


@pytest.mark.parametrize("f", OF_NUMBERS, ids=names)
def test_values_and_gradients_of_numbers(f: Any) -> None:
    torch.testing.assert_close(twice(f)(XS), looped(f, XS))
    gradient = relay.grad(f)
    torch.testing.assert_close(twice(gradient)(XS), looped(gradient, XS))


@pytest.mark.parametrize("f", [*QUICK, *LARGE], ids=names)
def test_values_and_gradients_of_programs_with_data(f: Any) -> None:
    torch.testing.assert_close(twice(f)(XS, NS), looped(f, XS, NS))
    gradient = relay.grad(f, wrt="x")
    torch.testing.assert_close(twice(gradient)(XS, NS), looped(gradient, XS, NS))


@pytest.mark.parametrize("f", [structures.trips, structures.record], ids=names)
def test_gradients_of_the_whole(f: Any) -> None:
    @relay
    def whole(xs: Tensor[D, (N, M)], ns: Tensor[Int, (N, M)]) -> Number:
        return relay.vmap(relay.vmap(f))(xs, ns).sum()

    wanted = looped(relay.grad(f, wrt="x"), XS, NS)
    torch.testing.assert_close(relay.grad(whole, wrt="xs")(XS, NS), wanted)
    _, tangent = relay.jvp(whole, wrt="xs")((XS, NS), (XS,))
    torch.testing.assert_close(tangent, (wanted * XS).sum())


@pytest.mark.parametrize("f", [structures.trips, structures.optional], ids=names)
def test_the_number_of_operators_is_independent_of_both_batches(f: Any) -> None:
    counts = {
        count_of(twice(f), XS.repeat(n, m), NS.repeat(n, m))
        for n, m in ((1, 1), (1, 8), (9, 1), (5, 20))
    }
    assert len(counts) == 1


@relay
def powers(x: Number, w: Number, n: Int) -> Number:
    return w if n <= 0 else relay.tanh(x * powers(x, w, n - 1)) if x > 0.0 else x


@pytest.mark.parametrize("outer", [(0, None, None), (None, 0, None), (1, None, 0), (-1, 0, None)])
@pytest.mark.parametrize("inner", [(0, None, None), (0, 0, 0)])
def test_either_batch_may_leave_out_what_the_other_has(outer: Any, inner: Any) -> None:
    """Each argument is batched where either of the two has an axis for it."""
    generator = torch.Generator().manual_seed(0)
    args: list[torch.Tensor] = []
    for place, (o, i) in enumerate(zip(outer, inner, strict=True)):
        shape = [3] * (i is not None)
        if o is not None:
            shape.insert(o % (len(shape) + 1), 2)
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        args.append((drawn.abs() * 3).long() if place == 2 else drawn)
    found = relay.vmap(relay.vmap(powers, in_axes=inner), in_axes=outer)(*args)
    rows: list[torch.Tensor] = []
    for b in range(2):
        own = [a if o is None else a.select(o, b) for a, o in zip(args, outer, strict=True)]
        each = (
            [a if i is None else a[k] for a, i in zip(own, inner, strict=True)] for k in range(3)
        )
        rows.append(torch.stack([powers(*e) for e in each]))
    torch.testing.assert_close(found, torch.stack(rows))


@relay
def clipped_row(x: Tensor[D, (K,)], i: Int) -> Tensor[D, (K,)]:
    y = x * 1.0
    while y[i] > 0.5:
        y[i] = y[i] - 1.0
        y[0] += x[i]
    return y


def test_updates_in_place_and_results_at_other_axes() -> None:
    generator = torch.Generator().manual_seed(0)
    xs = 3 * torch.rand(2, 4, 3, generator=generator, dtype=torch.float64)
    at = torch.tensor([[1, 2, 1, 2], [2, 2, 1, 1]])
    inner = relay.vmap(clipped_row, in_axes=(0, 0), out_axes=1)
    found = relay.vmap(inner, out_axes=-1)(xs, at)
    torch.testing.assert_close(found.permute(2, 1, 0), looped(clipped_row, xs, at))


@relay
def walk(key: Tensor[int, (2,)], x: Float) -> Float:
    count = 0.0
    while relay.abs(x) < 2.0:
        key, own = relay.random_split(key)
        x = x + relay.random.normal(own, ())
        count += 1.0
    return count + x


def test_each_pair_draws_by_its_own_key_until_it_stops() -> None:
    keys = relay.random_split(relay.random_key(0), 6).reshape(2, 3, 2)
    xs = XS.float() * 0.5
    torch.testing.assert_close(twice(walk)(keys, xs), looped(walk, keys, xs))


@relay
def cubes(xs: Tensor[D, (N, M, K)]) -> Tensor[D, (N, M, K)]:
    return relay.vmap(lambda x: relay.vmap(lambda y: relay.vmap(programs.branch)(y))(x))(xs)


def test_three_batches_inside_each_other() -> None:
    xs = torch.stack([XS, XS * 0.5, -XS, XS + 1.0])
    torch.testing.assert_close(cubes(xs), torch.stack([looped(programs.branch, x) for x in xs]))


@relay
def around(xs: Tensor[D, (N,)], n: Int) -> Number:
    """A loop with a number of trips of its own around a mapped function with branches."""
    total = 0.0 * xs[0]

    def one(x: Number, w: Number) -> Number:
        return relay.log(x) if x > 0.0 else x * w

    while n > 0:
        total += relay.vmap(one, in_axes=(0, None))(xs, total).sum()
        n -= 1
    return total


def test_mapped_functions_in_loops_of_mapped_functions() -> None:
    ns = torch.tensor([2, 3])
    wanted = torch.stack([around(x, n) for x, n in zip(XS, ns, strict=True)])
    torch.testing.assert_close(relay.vmap(around)(XS, ns), wanted)


@relay
def height(tree: axes.Tree[Number]) -> Number:
    match tree:
        case axes.Leaf(value):
            return relay.log(value) if value > 0.0 else value * value
        case axes.Node(left, right):
            a, b = height(left), height(right)
            return a * b if a > b else b - a


def test_data_in_and_gradients_of_data_out() -> None:
    tree = axes.Node(axes.Leaf(XS), axes.Node(axes.Leaf(-XS), axes.Leaf(XS * 2.0)))

    def one(x: torch.Tensor) -> Any:
        return axes.Node(axes.Leaf(x), axes.Node(axes.Leaf(-x), axes.Leaf(x * 2.0)))

    torch.testing.assert_close(twice(height)(tree), looped(lambda x: height(one(x)), XS))
    slope = twice(relay.grad(height))(tree)
    gradient = relay.grad(height)
    torch.testing.assert_close(slope.left.value, looped(lambda x: gradient(one(x)).left.value, XS))


def test_empty_batches_of_batches() -> None:
    for size in ((0, 3), (3, 0)):
        assert twice(programs.steps)(torch.zeros(size, dtype=torch.float64)).shape == size


@relay
def folded(x: Number, w: Number) -> Number:
    """Return a number by a loop with trips of its own, and an arm of its own."""
    while relay.abs(x) < 1.0:
        x = x * 1.7 + w * w
    return relay.log(x) * w if x > 0.0 else x * x


def plainly(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    while x.abs() < 1.0:
        x = x * 1.7 + w * w
    return x.log() * w if x > 0.0 else x * x


@relay
def mapped(xs: Tensor[D, (N,)], w: Number) -> Tensor[D, (N,)]:
    return relay.vmap(folded, in_axes=(0, None))(xs, w) * xs


@relay
def energy(xs: Tensor[D, (N,)], w: Number) -> Number:
    return (mapped(xs, w) ** 2).sum()


def mapped_plainly(xs: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.stack([plainly(x, w) for x in xs]) * xs


def energy_plainly(xs: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (mapped_plainly(xs, w) ** 2).sum()


@relay
def slopes(xs: Tensor[D, (N,)], w: Number) -> Number:
    by_x, by_w = relay.vmap(relay.grad(folded), in_axes=(0, None))(xs, w)
    return (by_x * by_w).sum()


def slopes_plainly(xs: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    slope = torch.func.grad(plainly, argnums=(0, 1))
    return sum((torch.mul(*slope(x, w)) for x in xs), torch.zeros((), dtype=torch.float64))


WS = torch.tensor([0.3, -0.7], dtype=torch.float64)
BETWEEN = {
    "grad": (relay.grad(energy), torch.func.grad(energy_plainly, argnums=(0, 1))),
    "jacrev": (relay.jacrev(mapped, wrt="xs"), torch.func.jacrev(mapped_plainly)),
}
SLOW_BETWEEN = {
    "grad of grad": (relay.grad(slopes), torch.func.grad(slopes_plainly, argnums=(0, 1))),
    "jacfwd": (relay.jacfwd(mapped, wrt="xs"), torch.func.jacrev(mapped_plainly)),
    "hessian": (relay.hessian(energy, wrt="xs"), torch.func.hessian(energy_plainly)),
}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        *(pytest.param(*pair, id=name) for name, pair in BETWEEN.items()),
        *(pytest.param(*p, id=n, marks=pytest.mark.slow) for n, p in SLOW_BETWEEN.items()),
    ],
)
def test_derivatives_between_two_batches(ours: Any, theirs: Any) -> None:
    """A batch around the derivative of a function with a batch inside."""
    wanted = [theirs(x, w) for x, w in zip(XS, WS, strict=True)]
    found = relay.vmap(ours)(XS, WS)
    if isinstance(found, tuple):
        wanted = tuple(torch.stack(column) for column in zip(*wanted, strict=True))
    torch.testing.assert_close(found, wanted if isinstance(found, tuple) else torch.stack(wanted))


def test_directions_between_two_batches() -> None:
    found = relay.vmap(relay.jvp(mapped, wrt="xs"))((XS, WS), (XS,))
    for row, (x, w) in enumerate(zip(XS, WS, strict=True)):
        wanted = torch.func.jvp(lambda x, w=w: mapped_plainly(x, w), (x,), (x,))
        torch.testing.assert_close((found[0][row], found[1][row]), wanted)


def test_the_number_of_operators_of_derivatives_between_is_independent_of_both_batches() -> None:
    f = relay.vmap(relay.grad(energy))
    counts = {count_of(f, XS.repeat(n, m), WS.repeat(n)) for n, m in ((1, 1), (1, 8), (9, 2))}
    assert len(counts) == 1


@relay
def of_tree(tree: axes.Tree[Tensor[D, (N,)]], w: Number) -> Number:
    def one(tree: axes.Tree[Number], w: Number) -> Number:
        found = height(tree) * w
        return found if found > 1.0 else relay.exp(found) * w

    return relay.vmap(one, in_axes=(0, None))(tree, w).sum()


def test_gradients_of_data_between_two_batches() -> None:
    def tree(xs: torch.Tensor) -> Any:
        return axes.Node(axes.Leaf(xs), axes.Leaf(-2.0 * xs))

    gradient = relay.grad(of_tree)
    found, by_w = relay.vmap(gradient)(tree(XS), WS)
    for row, (x, w) in enumerate(zip(XS, WS, strict=True)):
        slope, own = gradient(tree(x), w)
        torch.testing.assert_close(found.left.value[row], slope.left.value)
        torch.testing.assert_close(found.right.value[row], slope.right.value)
        torch.testing.assert_close(by_w[row], own)
