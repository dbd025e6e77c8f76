"""Programs of a vector over functions and effects: closures, recursion, solvers, cells that
functions share, assertions, and derivatives that programs write themselves."""

from __future__ import annotations

from typing import Any, Final

from pyrelay import Fn, Int, Tensor, float64, relay
from tests.features.transforms.programs.case import Case

VECTOR = Tensor[float64, (3,)]
Scalar = Fn[[float64], float64]


@relay
def roots_by_newton(x: VECTOR) -> float64:
    square, guess = x[0] * x[0] + 2.0, 1.0 + x[1] * x[1]
    for _ in range(6):
        guess = 0.5 * (guess + square / guess)
    return guess * x[2]


@relay
def solved_equations(x: VECTOR) -> float64:
    def slope(t: float64, y: float64) -> float64:
        return relay.sin(t) * x[1] - y * 0.5

    t, y, h = 0.0, x[0], 0.25
    for _ in range(3):
        k1 = slope(t, y)
        k2 = slope(t + h / 2.0, y + k1 * h / 2.0)
        y = y + h * k2
        t = t + h
    return y * x[2]


@relay
def polynomials(x: VECTOR) -> float64:
    total = 0.0
    for coefficient in reversed([x[0], x[1], x[2], 2.0]):
        total = total * x[1] + coefficient
    return total


@relay
def nested(n: Int, x: float64) -> float64:
    return relay.sin(x) if n <= 0 else nested(n - 2, nested(n - 1, x * 0.5))


@relay
def nested_calls(x: VECTOR) -> float64:
    return nested(3, x[0] * x[1]) * x[2]


@relay
def twofold(n: Int, x: float64) -> float64:
    if n < 2:
        return x * n + 1.0
    return twofold(n - 1, x) * x + relay.tanh(twofold(n - 2, x))


@relay
def twofold_recursion(x: VECTOR) -> float64:
    return twofold(5, x[0] * 0.5) + twofold(2, x[1] * x[2])


@relay
def tail(n: Int, x: float64, total: float64) -> float64:
    return total if n == 0 else tail(n - 1, relay.sin(x), total * x + n)


@relay
def tail_recursion(x: VECTOR) -> float64:
    return tail(4, x[0], x[1]) * x[2]


@relay
def local_recursion(x: VECTOR) -> float64:
    def walk(n: Int, y: float64) -> float64:
        return x[2] if n == 0 else y * walk(n - 1, relay.sin(y)) + x[1]

    return walk(3, x[0])


@relay
def composed(f: Scalar, g: Scalar) -> Scalar:
    return lambda v: f(g(v))


@relay
def compositions(x: VECTOR) -> float64:
    both = composed(lambda v: v * x[0], composed(relay.sin, lambda v: v + x[1]))
    return both(x[2]) * composed(both, both)(x[0])


@relay
def iterated(f: Scalar, n: Int) -> Scalar:
    if n == 0:
        return lambda v: v
    rest = iterated(f, n - 1)
    return lambda v: f(rest(v))


@relay
def iterated_functions(x: VECTOR) -> float64:
    return iterated(lambda v: relay.sin(v) * x[1] + x[2], 3)(x[0])


@relay
def lists_of_functions(x: VECTOR) -> float64:
    functions = [lambda v: v * x[0], relay.tanh, lambda v: v + x[1] * v]
    value = x[2]
    for f in functions:
        value = f(value)
    return value


@relay
def chosen_functions(x: VECTOR) -> float64:
    total = x[1]
    for i in range(4):
        f = (lambda v: v * x[0]) if i % 2 == 0 else (lambda v: relay.sin(v) + x[2])
        total = f(total)
    return total


@relay
def curried(x: VECTOR) -> float64:
    def outer(a: float64) -> Fn[[float64], Scalar]:
        def middle(b: float64) -> Scalar:
            return lambda c: a * b + c * a

        return middle

    return outer(x[0])(x[1])(x[2]) * outer(x[2])(x[0])(x[0])


@relay
def counters(x: VECTOR) -> float64:
    total = relay.ref(x[0])

    def add(value: float64) -> float64:
        total.value = total.value * x[2] + value
        return total.value

    one = add(x[1])
    other = add(one * x[1])
    return one * other + total.value


@relay
def swapped_cells(x: VECTOR) -> float64:
    one, other = relay.ref(x[0]), relay.ref(x[1])
    for _ in range(3):
        kept = one.value
        one.value = relay.sin(other.value) * x[2]
        other.value = kept * kept
    return one.value * other.value


@relay
def cells_of_lists(x: VECTOR) -> float64:
    log = relay.ref([x[0]])
    for i in range(3):
        log.value = [*log.value, log.value[i] * x[1] + x[2]]
    return sum(log.value)


@relay
def cells_in_recursion(x: VECTOR) -> float64:
    seen = relay.ref(x[0])

    def walk(n: Int) -> float64:
        seen.value = seen.value * relay.sin(x[1])
        return seen.value if n == 0 else seen.value + walk(n - 1) * x[2]

    return walk(2)


@relay
def asserted(x: VECTOR) -> float64:
    total = x[0]
    for i in range(3):
        total = total * x[1] + x[2]
        assert i < 3, "it ends"
    return total * total


@relay
def continued_loops(x: VECTOR) -> float64:
    total, i = x[0], 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        total = relay.sin(total) + x[1] * i
        if i > 4:
            break
    return total * x[2]


@relay
def returned_early(x: VECTOR) -> float64:
    for i in range(5):
        for j in range(i):
            if i * j == 2:
                return x[0] ** 2 * x[1] * i + x[2] * j
    return x[0]


@relay
def elements_carried(x: VECTOR) -> float64:
    low, high = x[0], x[0]
    for value in x:
        low, high = relay.minimum(low, value), relay.maximum(high, value)
    return (high - low) * high


@relay
def slopes_in_loops(x: VECTOR) -> float64:
    point = x[0]
    for _ in range(3):
        point = point - 0.1 * relay.grad(lambda p: relay.sin(p) * x[1] + p * p)(point)
    return point * x[2]


@relay
def curvatures(x: VECTOR) -> float64:
    def energy(p: float64) -> float64:
        return relay.exp(p * x[1]) * x[2]

    slope = relay.grad(energy)
    return relay.grad(slope)(x[0]) * energy(x[0])


@relay
def softened(x: float64) -> float64:
    return relay.tanh(x) * x


@relay
def computed_again(x: VECTOR) -> float64:
    return relay.checkpoint(softened)(x[0] * x[1]) + relay.checkpoint(softened)(x[2])


@relay
def scaled(v: float64, by: float64) -> float64:
    return v * by + v * v


@relay
def rows_in_loops(x: VECTOR) -> float64:
    total = x[0]
    for i in range(2):
        total = total + relay.vmap(scaled, in_axes=(0, None))(x, x[i]).sum() * total
    return total


def euler(m: Any, x: Any) -> Any:
    t, y, h = 0.0 * x[0], x[0], 0.25
    for _ in range(3):
        half = y + (m.sin(t) * x[1] - y * 0.5) * h / 2.0
        y, t = y + h * (m.sin(t + h / 2.0) * x[1] - half * 0.5), t + h
    return y * x[2]


def newton(_: Any, x: Any) -> Any:
    guess = 1.0 + x[1] ** 2
    for _ in range(6):
        guess = 0.5 * (guess + (x[0] ** 2 + 2.0) / guess)
    return guess * x[2]


def nested_by_hand(m: Any, n: int, x: Any) -> Any:
    if n <= 0:
        return m.sin(x)
    return nested_by_hand(m, n - 2, nested_by_hand(m, n - 1, x * 0.5))


def twofold_by_hand(m: Any, n: int, x: Any) -> Any:
    values = [1.0 + 0.0 * x, x + 1.0]
    for _ in range(n - 1):
        values.append(values[-1] * x + m.tanh(values[-2]))
    return values[n]


def tail_by_hand(m: Any, x: Any) -> Any:
    value, total = x[0], x[1]
    for n in (4, 3, 2, 1):
        value, total = m.sin(value), total * value + n
    return total * x[2]


def walked(m: Any, x: Any) -> Any:
    a, b = m.sin(x[0]), m.sin(m.sin(x[0]))
    return x[0] * (a * (b * x[2] + x[1]) + x[1]) + x[1]


def composed_by_hand(m: Any, x: Any) -> Any:
    def both(v: Any) -> Any:
        return m.sin(v + x[1]) * x[0]

    return both(x[2]) * both(both(x[0]))


def thrice(m: Any, x: Any) -> Any:
    value = x[0]
    for _ in range(3):
        value = m.sin(value) * x[1] + x[2]
    return value


def alternated(m: Any, x: Any) -> Any:
    return m.sin((m.sin(x[1] * x[0]) + x[2]) * x[0]) + x[2]


def counted(_: Any, x: Any) -> Any:
    one = x[0] * x[2] + x[1]
    other = one * x[2] + one * x[1]
    return one * other + other


def swapped(m: Any, x: Any) -> Any:
    one, other = x[0], x[1]
    for _ in range(3):
        one, other = m.sin(other) * x[2], one * one
    return one * other


def logged(_: Any, x: Any) -> Any:
    values = [x[0]]
    for i in range(3):
        values.append(values[i] * x[1] + x[2])
    return sum(values)


def seen_by_hand(m: Any, x: Any) -> Any:
    a = x[0] * m.sin(x[1])
    b = a * m.sin(x[1])
    return a + (b + b * m.sin(x[1]) * x[2]) * x[2]


def three_times(_: Any, x: Any) -> Any:
    return (((x[0] * x[1] + x[2]) * x[1] + x[2]) * x[1] + x[2]) ** 2


def odd_rounds(m: Any, x: Any) -> Any:
    total = x[0]
    for i in (1, 3, 5):
        total = m.sin(total) + x[1] * i
    return total * x[2]


def descended(m: Any, x: Any) -> Any:
    point = x[0]
    for _ in range(3):
        point = point - 0.1 * (m.cos(point) * x[1] + 2.0 * point)
    return point * x[2]


def summed_rows(m: Any, x: Any) -> Any:
    total = x[0]
    for i in range(2):
        total = total + m.sum(x * x[i] + x * x) * total
    return total


def added_softly(m: Any, x: Any) -> Any:
    return m.tanh(x[0] * x[1]) * x[0] * x[1] + m.tanh(x[2]) * x[2]


CASES: Final = [
    Case(roots_by_newton, (3,), newton),
    Case(solved_equations, (3,), euler),
    Case(polynomials, (3,), lambda _, x: x[0] + x[1] ** 2 + x[2] * x[1] ** 2 + 2.0 * x[1] ** 3),
    Case(nested_calls, (3,), lambda m, x: nested_by_hand(m, 3, x[0] * x[1]) * x[2]),
    Case(
        twofold_recursion,
        (3,),
        lambda m, x: twofold_by_hand(m, 5, x[0] * 0.5) + twofold_by_hand(m, 2, x[1] * x[2]),
    ),
    Case(tail_recursion, (3,), tail_by_hand),
    Case(local_recursion, (3,), walked),
    Case(compositions, (3,), composed_by_hand),
    Case(iterated_functions, (3,), thrice),
    Case(lists_of_functions, (3,), lambda m, x: m.tanh(x[2] * x[0]) * (1.0 + x[1])),
    Case(chosen_functions, (3,), alternated),
    Case(curried, (3,), lambda _, x: (x[0] * x[1] + x[2] * x[0]) * (x[2] * x[0] + x[0] * x[2])),
    Case(counters, (3,), counted),
    Case(swapped_cells, (3,), swapped),
    Case(cells_of_lists, (3,), logged),
    Case(cells_in_recursion, (3,), seen_by_hand),
    Case(asserted, (3,), three_times),
    Case(continued_loops, (3,), odd_rounds),
    Case(returned_early, (3,), lambda _, x: x[0] ** 2 * x[1] * 2 + x[2]),
    Case(elements_carried, (3,), lambda m, x: (m.amax(x) - m.amin(x)) * m.amax(x)),
    Case(slopes_in_loops, (3,), descended),
    Case(curvatures, (3,), lambda m, x: x[1] ** 2 * x[2] ** 2 * m.exp(2.0 * x[0] * x[1])),
    Case(computed_again, (3,), added_softly),
    Case(rows_in_loops, (3,), summed_rows),
]
