"""Programs of a vector over data: interpreters, machines, lists, records, optional values and
functions held in data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pyrelay import Fn, Int, Tensor, float64, relay
from tests.features.transforms.programs.case import Case

VECTOR = Tensor[float64, (3,)]


@dataclass(frozen=True)
class Variable:
    index: Int


@dataclass(frozen=True)
class Literal:
    value: float64


@dataclass(frozen=True)
class Plus:
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Times:
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Sine:
    inner: Expr


Expr = Variable | Literal | Plus | Times | Sine


@dataclass(frozen=True)
class Rose:
    value: float64
    parts: list[Rose]


@dataclass(frozen=True)
class Push:
    value: float64


@dataclass(frozen=True)
class Multiply:
    pass


@dataclass(frozen=True)
class Swap:
    pass


Instruction = Push | Multiply | Swap


@dataclass(frozen=True)
class Body:
    place: float64
    speed: float64
    bounces: Int


@dataclass(frozen=True)
class Layer:
    weight: float64
    act: Fn[[float64], float64]


@dataclass(frozen=True)
class End:
    pass


@dataclass(frozen=True)
class Link:
    value: float64
    rest: Chain


Chain = End | Link


@relay
def value_of(expr: Expr, x: VECTOR) -> float64:
    match expr:
        case Variable(index):
            return x[index]
        case Literal(value):
            return value
        case Plus(left, right):
            return value_of(left, x) + value_of(right, x)
        case Times(left, right):
            return value_of(left, x) * value_of(right, x)
        case Sine(inner):
            return relay.sin(value_of(inner, x))


@relay
def simpler(expr: Expr) -> Expr:
    match expr:
        case Times(Literal(a), Literal(b)):
            return Literal(a * b)
        case Plus(left, right):
            return Plus(simpler(left), simpler(right))
        case Times(left, right):
            return Times(simpler(left), simpler(right))
        case Sine(inner):
            return Sine(simpler(inner))
        case other:
            return other


@relay
def interpreters(x: VECTOR) -> float64:
    expr = Plus(Times(Variable(0), Sine(Variable(1))), Times(Variable(2), Literal(x[0] * 2.0)))
    return value_of(expr, x)


@relay
def rewritten_expressions(x: VECTOR) -> float64:
    expr = Sine(Plus(Times(Literal(x[0]), Literal(x[1])), Variable(2)))
    return value_of(simpler(expr), x) * x[1]


@relay
def weight_of(rose: Rose) -> float64:
    total = rose.value
    for part in rose.parts:
        total = relay.tanh(total + weight_of(part) * 0.5)
    return total


@relay
def rose_trees(x: VECTOR) -> float64:
    leaf = Rose(x[1], [])
    return weight_of(Rose(x[0], [leaf, Rose(x[2], [leaf, Rose(x[0] * x[2], [])])]))


@relay
def stack_machines(x: VECTOR) -> float64:
    stack: list[float64] = []
    for code in [Push(x[0]), Push(x[1]), Multiply(), Push(x[2]), Swap(), Multiply()]:
        match code:
            case Push(value):
                stack.append(relay.sin(value))
            case Multiply():
                one, other = stack[-1], stack[-2]
                stack = [*stack[:-2], one * other]
            case Swap():
                one, other = stack[-1], stack[-2]
                stack = [*stack[:-2], one, other]
    return stack[0] * x[0]


@relay
def falling(x: VECTOR) -> float64:
    body = Body(x[0] * x[0] + 1.0, x[1], 0)
    for _ in range(5):
        place, speed = body.place + 0.5 * body.speed, body.speed - x[2] * x[2]
        if place < 0.0:
            body = Body(-place, -0.8 * speed, body.bounces + 1)
        else:
            body = Body(place, speed, body.bounces)
    return body.place * body.speed + body.bounces


@relay
def functions_in_records(x: VECTOR) -> float64:
    layers = [
        Layer(x[0], lambda v: relay.tanh(v * x[2])),
        Layer(x[1], lambda v: relay.sin(v) + x[0]),
    ]
    state = x[2]
    for layer in layers:
        state = layer.act(state * layer.weight)
    return state


@relay
def reversed_chain(chain: Chain, done: Chain) -> Chain:
    match chain:
        case End():
            return done
        case Link(value, rest):
            return reversed_chain(rest, Link(value, done))


@relay
def weighed(chain: Chain, w: float64) -> float64:
    match chain:
        case Link(a, Link(b, rest)):
            return a * w - b * weighed(rest, w * 2.0)
        case Link(a, End()):
            return a * a * w
        case End():
            return w


@relay
def chains_turned(x: VECTOR) -> float64:
    chain = Link(x[0], Link(relay.sin(x[1]), Link(x[2] * x[0], End())))
    return weighed(reversed_chain(chain, End()), x[1])


@relay
def first_above(x: VECTOR, least: float64) -> float64 | None:
    for value in x:
        if value > least:
            return value * value
    return None


@relay
def optional_values(x: VECTOR) -> float64:
    one, other = first_above(x, -100.0), first_above(x, 100.0)
    a = x[1] if one is None else one
    b = x[2] if other is None else other
    return a * relay.exp(b * 0.1)


@relay
def zipped_lists(x: VECTOR) -> float64:
    total = 0.0
    for i, (a, b) in enumerate(zip([x[0], x[1]], [x[2] * x[2], x[0]])):
        total += a * b * (i + 1)
    return total


@relay
def filtered_lists(x: VECTOR) -> float64:
    values = [v * v for v in [x[0], x[1], x[2], x[0] * x[1]] if v < 100.0]
    kept = [a * b for a in values for b in values[:2]]
    return sum(kept) * len(kept)


@relay
def lists_of_lists(x: VECTOR) -> float64:
    rows = [[x[0], x[1] * x[0]], [relay.sin(x[2])], []]
    total = x[0]
    for row in rows:
        inner = 1.0
        for value in row:
            inner = inner * value
        total = total + inner * len(row)
    return total


@relay
def guarded_matches(x: VECTOR) -> float64:
    total = x[0]
    for i in range(5):
        match i:
            case 0 | 3:
                total = relay.sin(total) * x[1]
            case n if n > 3:
                total = total * n
            case 1 as n:
                total = total + x[2] * n
            case _:
                total = total * total
    return total


@relay
def polymorphic_pair(f: Fn[[float64], float64], values: list[float64]) -> tuple[float64, Int]:
    total = 0.0
    for value in values:
        total = total + f(value)
    return total, len(values)


@relay
def tuples_of_results(x: VECTOR) -> float64:
    one, count = polymorphic_pair(lambda v: v * x[1], [x[0], x[2]])
    other, more = polymorphic_pair(relay.sin, [x[0] * x[0]])
    return one * other * (count + more)


@relay
def unused_data(x: VECTOR) -> float64:
    rose = Rose(x[0], [Rose(x[1], []), Rose(x[2] * x[2], [])])
    return rose.parts[1].value * x[0]


@relay
def shared_data(x: VECTOR) -> float64:
    shared = Link(x[0] * x[1], Link(x[2], End()))
    return weighed(shared, x[0]) * weighed(Link(x[1], shared), x[2])


def weight(m: Any, value: Any, *parts: Any) -> Any:
    for part in parts:
        value = m.tanh(value + part * 0.5)
    return value


def roses(m: Any, x: Any) -> Any:
    return weight(m, x[0], x[1], weight(m, x[2], x[1], x[0] * x[2]))


def fallen(m: Any, x: Any) -> Any:
    place, speed, bounces = x[0] * x[0] + 1.0, x[1], 0.0
    for _ in range(5):
        place, speed = place + 0.5 * speed, speed - x[2] * x[2]
        bounces = bounces + m.where(place < 0.0, 1.0, 0.0)
        place, speed = m.abs(place), m.where(place < 0.0, -0.8 * speed, speed)
    return place * speed + bounces


def guarded(m: Any, x: Any) -> Any:
    total = m.sin(x[0]) * x[1] + x[2]
    return m.sin(total * total) * x[1] * 4


def listed_twice(_: Any, x: Any) -> Any:
    values = [x[0] ** 2, x[1] ** 2, x[2] ** 2, (x[0] * x[1]) ** 2]
    return sum(values) * (values[0] + values[1]) * 8


CASES: Final = [
    Case(interpreters, (3,), lambda m, x: x[0] * m.sin(x[1]) + 2.0 * x[2] * x[0]),
    Case(rewritten_expressions, (3,), lambda m, x: m.sin(x[0] * x[1] + x[2]) * x[1]),
    Case(rose_trees, (3,), roses),
    Case(stack_machines, (3,), lambda m, x: m.sin(x[0]) * m.sin(x[1]) * m.sin(x[2]) * x[0]),
    Case(falling, (3,), fallen),
    Case(functions_in_records, (3,), lambda m, x: m.sin(m.tanh(x[2] * x[0] * x[2]) * x[1]) + x[0]),
    Case(
        chains_turned, (3,), lambda m, x: x[2] * x[0] * x[1] - m.sin(x[1]) * x[0] ** 2 * x[1] * 2.0
    ),
    Case(optional_values, (3,), lambda m, x: x[0] ** 2 * m.exp(x[2] * 0.1)),
    Case(zipped_lists, (3,), lambda _, x: x[0] * x[2] ** 2 + 2.0 * x[1] * x[0]),
    Case(filtered_lists, (3,), listed_twice),
    Case(lists_of_lists, (3,), lambda m, x: x[0] + 2.0 * x[0] ** 2 * x[1] + m.sin(x[2])),
    Case(guarded_matches, (3,), guarded),
    Case(tuples_of_results, (3,), lambda m, x: (x[0] + x[2]) * x[1] * m.sin(x[0] ** 2) * 3.0),
    Case(unused_data, (3,), lambda _, x: x[2] ** 2 * x[0]),
    Case(
        shared_data,
        (3,),
        lambda _, x: (
            (x[0] * x[1] * x[0] - x[2] * 2.0 * x[0])
            * (x[1] * x[2] - x[0] * x[1] * x[2] ** 2 * 2.0 * x[2])
        ),
    ),
]
