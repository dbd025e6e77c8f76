"""Programs of a vector with control: recursion, loops, branches, closures, cells, lists, data, and
transforms inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pyrelay import Fn, Int, Tensor, float64, relay
from tests.binary_trees import Leaf, Node, Tree
from tests.features.transforms.programs.case import Case

VECTOR = Tensor[float64, (3,)]
T = TypeVar("T")


@dataclass(frozen=True)
class Pair(Generic[T]):
    first: T
    count: Int
    second: T


@relay
def grown(depth: Int, x: VECTOR) -> Tree[float64]:
    if depth == 0:
        return Leaf(x[0] * x[1])
    return Node(grown(depth - 1, relay.sin(x)), grown(depth - 1, x * 0.5))


@relay
def total(tree: Tree[float64], w: float64) -> float64:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Node(left, right):
            return total(left, w) * w + total(right, w)


@relay
def trees(x: VECTOR) -> float64:
    return total(grown(2, x), x[2])


@relay
def power(x: float64, n: Int) -> float64:
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half if n % 2 == 0 else x * half * half


@relay
def recursive_powers(x: VECTOR) -> float64:
    return power(x[0], 5) * power(x[1], 2) + power(x[2], 3)


@relay
def is_even(n: Int, x: float64) -> float64:
    return x if n == 0 else is_odd(n - 1, relay.sin(x))


@relay
def is_odd(n: Int, x: float64) -> float64:
    return x * x if n == 0 else is_even(n - 1, x * 1.5)


@relay
def mutual_recursion(x: VECTOR) -> float64:
    return is_even(4, x[0]) * is_odd(3, x[1]) + is_even(3, x[2])


@relay
def loops(x: VECTOR) -> float64:
    y = x
    for i in range(3):
        y = relay.sin(y) * x + y * i
    return relay.sum(y * y)


@relay
def nested_loops(x: VECTOR) -> float64:
    value = 0.0
    for i in range(3):
        for j in range(i + 1):
            value = value * 0.5 + x[i] * x[j] * x[j]
    return value


@relay
def loops_over_elements(x: VECTOR) -> float64:
    value = 1.0
    for e in x:
        value = value * (1.0 + e * e)
    return value


@relay
def while_loops(x: VECTOR) -> float64:
    value = relay.sum(x * x) + 1.0
    while value > 0.3:
        value = value * relay.cos(x[0]) * 0.7
    return value


@relay
def broken_loops(x: VECTOR) -> float64:
    value = 0.0
    for i in range(6):
        value = value + relay.exp(-x[0]) * x[1]
        if i == 2:
            break
    return value * value * x[2]


@relay
def branches(x: VECTOR) -> float64:
    if x[0] > 0.0:
        return relay.sum(x**3)
    return relay.sin(x[1]) * x[2]


@relay
def nested_branches(x: VECTOR) -> float64:
    if x[0] > 0.0 and x[1] > 0.0:
        value = x[0] * x[1]
    elif x[2] < 0.0:
        value = relay.exp(x[2]) * x[0]
    else:
        value = x[0] - x[1] ** 2
    return value * value


@relay
def closures(x: VECTOR) -> float64:
    scale = relay.sum(x * x)

    def scaled(y: float64) -> float64:
        return relay.sin(y * scale)

    return scaled(x[0]) + scaled(x[1]) * x[2]


@relay
def twice(f: Fn[[float64], float64], x: float64) -> float64:
    return f(f(x))


@relay
def functions_passed(x: VECTOR) -> float64:
    return twice(lambda y: relay.sin(y) * x[1], x[0]) + twice(lambda y: y * x[2], x[1])


@relay
def functions_returned(x: VECTOR) -> float64:
    def adder(a: float64) -> Fn[[float64], float64]:
        return lambda b: relay.tanh(a * b)

    return adder(x[0])(x[1]) * adder(x[2])(x[2])


@relay
def functions_in_tuples(x: VECTOR) -> float64:
    both = (lambda y: relay.sin(y) * x[0], lambda y: y * y)
    return both[0](x[1]) * both[1](x[2])


@relay
def cells(x: VECTOR) -> float64:
    cell = relay.ref(x[0])
    for i in range(3):
        cell.value = cell.value * x[1] + relay.sin(x[2]) * i
    return cell.value * cell.value


@relay
def lists(x: VECTOR) -> float64:
    values = [relay.sin(x[i]) * x[0] for i in range(3)]
    value = 0.0
    for v in values:
        value = value * x[1] + v
    return value


@relay
def appended_lists(x: VECTOR) -> float64:
    values = [x[0] * x[0]]
    for i in range(3):
        values.append(values[-1] * x[i] + x[1])
    return values[3] * values[1]


@relay
def generic_data(x: VECTOR) -> float64:
    pair = Pair(x[0] * x[1], 2, relay.sin(x[2]))
    return pair.first * pair.second * pair.count + pair.first**2


@relay
def tuples(x: VECTOR) -> float64:
    a, (b, c) = x[0] * x[1], (x[1], x[2] * x[2])
    a, b = b * c, a
    return a * b + c * c


@relay
def updated_elements(x: VECTOR) -> float64:
    y = x * x
    y[0] = y[1] * x[2]
    y[1:] += x[:2]
    return relay.sum(y * y)


@relay
def shared_values(x: VECTOR) -> float64:
    y = relay.sin(x)
    z = y * y
    return relay.sum(z + z * y) + relay.sum(z)


@relay
def unused_values(x: VECTOR) -> float64:
    y = relay.exp(x)
    z = relay.sin(y) * x
    if x[0] > 100.0:
        return relay.sum(z)
    return relay.sum(y[:1] * x[:1] ** 2)


@relay
def gradients_inside(x: VECTOR) -> float64:
    return relay.sum(relay.grad(lambda y: relay.sum(relay.sin(y) * y * x))(x))


@relay
def directions_inside(x: VECTOR) -> float64:
    return relay.jvp(lambda y: relay.sum(y**3) * x[0])((x,), (relay.sin(x),))[1]


@relay
def batches_inside(x: VECTOR) -> float64:
    return relay.sum(relay.vmap(lambda e: relay.sin(e) * x[0])(x * x))


@relay
def perturbations(x: VECTOR) -> float64:
    return x[0] * relay.grad(lambda y: x[0] * y * y + x[1] * y)(x[2])


@relay
def matches(x: VECTOR) -> float64:
    match (x[0] > 0.0, x[1] > 0.0):
        case (True, True):
            return x[0] * x[1]
        case (True, _):
            return x[0] ** 3 * x[2]
        case _:
            return relay.sin(x[1]) * x[2]


# What they compute.


def tree_by_hand(m: Any, depth: int, x: Any, w: Any) -> Any:
    if depth == 0:
        return m.tanh(x[0] * x[1] * w)
    left = tree_by_hand(m, depth - 1, m.sin(x), w)
    return left * w + tree_by_hand(m, depth - 1, x * 0.5, w)


def alternated(m: Any, n: int, x: Any) -> Any:
    """Return `is_even(n, x)`, or `is_odd(-n, x)` of a negative number."""
    even = n >= 0
    for _ in range(abs(n)):
        x = m.sin(x) if even else x * 1.5
        even = not even
    return x if even else x * x


def iterated(m: Any, x: Any) -> Any:
    y = x
    for i in range(3):
        y = m.sin(y) * x + y * i
    return y


def nested_sum(_: Any, x: Any) -> Any:
    value: Any = 0.0
    for i in range(3):
        for j in range(i + 1):
            value = value * 0.5 + x[i] * x[j] * x[j]
    return value


def halved(m: Any, x: Any) -> Any:
    value = m.sum(x * x) + 1.0
    while float(value) > 0.3:
        value = value * m.cos(x[0]) * 0.7
    return value


def written(m: Any, x: Any) -> Any:
    value = x[0]
    for i in range(3):
        value = value * x[1] + m.sin(x[2]) * i
    return value


def appended(_: Any, x: Any) -> Any:
    values = [x[0] * x[0]]
    for i in range(3):
        values.append(values[-1] * x[i] + x[1])
    return values[3] * values[1]


def alternation(m: Any, x: Any) -> Any:
    return alternated(m, 4, x[0]) * alternated(m, -3, x[1]) + alternated(m, 3, x[2])


def chosen(m: Any, x: Any) -> Any:
    rest = m.where(x[2] < 0.0, m.exp(x[2]) * x[0], x[0] - x[1] ** 2)
    return m.where((x[0] > 0.0) & (x[1] > 0.0), x[0] * x[1], rest) ** 2


def matched(m: Any, x: Any) -> Any:
    rest = m.where(x[0] > 0.0, x[0] ** 3 * x[2], m.sin(x[1]) * x[2])
    return m.where((x[0] > 0.0) & (x[1] > 0.0), x[0] * x[1], rest)


def updated(_: Any, x: Any) -> Any:
    squares = x * x
    first = (squares[1] * x[2]) ** 2
    return first + (squares[1] + x[0]) ** 2 + (squares[2] + x[1]) ** 2


def listed(m: Any, x: Any) -> Any:
    return (m.sin(x[0]) * x[1] ** 2 + m.sin(x[1]) * x[1] + m.sin(x[2])) * x[0]


def scaled_twice(m: Any, x: Any) -> Any:
    scale = m.sum(x * x)
    return m.sin(x[0] * scale) + m.sin(x[1] * scale) * x[2]


CASES: Final = [
    Case(trees, (3,), lambda m, x: tree_by_hand(m, 2, x, x[2])),
    Case(recursive_powers, (3,), lambda _, x: x[0] ** 5 * x[1] ** 2 + x[2] ** 3),
    Case(mutual_recursion, (3,), alternation),
    Case(loops, (3,), lambda m, x: m.sum(iterated(m, x) ** 2)),
    Case(nested_loops, (3,), nested_sum),
    Case(loops_over_elements, (3,), lambda m, x: m.prod(1.0 + x * x)),
    Case(while_loops, (3,), halved, is_in_jax=False),
    Case(broken_loops, (3,), lambda m, x: (3.0 * m.exp(-x[0]) * x[1]) ** 2 * x[2]),
    Case(branches, (3,), lambda m, x: m.where(x[0] > 0.0, m.sum(x**3), m.sin(x[1]) * x[2])),
    Case(nested_branches, (3,), chosen),
    Case(closures, (3,), scaled_twice),
    Case(
        functions_passed, (3,), lambda m, x: m.sin(m.sin(x[0]) * x[1]) * x[1] + x[1] * x[2] * x[2]
    ),
    Case(functions_returned, (3,), lambda m, x: m.tanh(x[0] * x[1]) * m.tanh(x[2] * x[2])),
    Case(functions_in_tuples, (3,), lambda m, x: m.sin(x[1]) * x[0] * x[2] ** 2),
    Case(cells, (3,), lambda m, x: written(m, x) ** 2),
    Case(lists, (3,), listed),
    Case(appended_lists, (3,), appended),
    Case(generic_data, (3,), lambda m, x: 2.0 * x[0] * x[1] * m.sin(x[2]) + (x[0] * x[1]) ** 2),
    Case(tuples, (3,), lambda _, x: x[1] * x[2] ** 2 * x[0] * x[1] + x[2] ** 4),
    Case(updated_elements, (3,), updated),
    Case(shared_values, (3,), lambda m, x: m.sum(2.0 * m.sin(x) ** 2 + m.sin(x) ** 3)),
    Case(unused_values, (3,), lambda m, x: m.exp(x[0]) * x[0] ** 2),
    Case(gradients_inside, (3,), lambda m, x: m.sum((m.cos(x) * x + m.sin(x)) * x)),
    Case(directions_inside, (3,), lambda m, x: m.sum(3.0 * x**2 * m.sin(x)) * x[0]),
    Case(batches_inside, (3,), lambda m, x: m.sum(m.sin(x * x)) * x[0]),
    Case(perturbations, (3,), lambda _, x: x[0] * (2.0 * x[0] * x[2] + x[1])),
    Case(matches, (3,), matched),
]
