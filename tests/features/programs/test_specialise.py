"""Functions with arguments fixed: what is left of them, and that it has their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, Model, RunError, Tensor, relay, relay_model
from tests.features.programs.test_interpreter import (
    POWER,
    Apply,
    Binary,
    Const,
    IfPositive,
    Lambda,
    Name,
    Term,
    run,
)

N = Dim("N")
X = torch.tensor(1.5)


@relay
def power(x: Float, n: Int) -> Float:
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half if n % 2 == 0 else x * half * half


@relay
def polynomial(coefficients: list[Float], x: Float) -> Float:
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


RATE = 2.0


@relay
def scaled(x: Float, n: Int) -> Float:
    return x * RATE**n


@relay
def affine(w: Tensor[Float, (N,)], x: Tensor[Float, (N,)], b: Float) -> Tensor[Float, (N,)]:
    return w * x + b


@relay
def applied(f: Callable[[Float], Float], times: Int, x: Float) -> Float:
    for _ in range(times):
        x = f(x)
    return x


@relay
def squared(x: Float) -> Float:
    return x * x


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree
    name: str


Tree = Leaf | Node


@relay
def total(tree: Tree, w: Float) -> Float:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Node(left, right, name):
            assert name != "empty", "there is something in it"
            return total(left, w) + total(right, w)


def body(function: object) -> list[str]:
    """Return the lines of the one function of a program."""
    text = str(function)
    assert text.count("def @") == 1, text
    return text[text.index("def @") :].strip().splitlines()[1:-1]


def calls(function: object) -> list[str]:
    """Return the operators of a program of one function without branches, in order."""
    lines = body(function)
    assert all(" = " in line for line in lines[:-1]), lines
    return [line.partition(" = ")[2].partition("(")[0] for line in lines[:-1]]


def test_an_exponent_that_is_known_leaves_products() -> None:
    fifth = relay.specialise(power, n=5)
    assert calls(fifth) == ["multiply"] * 3
    torch.testing.assert_close(fifth(X), X**5)
    torch.testing.assert_close(fifth.interpret(X), X**5)
    torch.testing.assert_close(fifth(x=2.0), torch.tensor(32.0))


PROGRAMS: dict[str, tuple[Term, list[str]]] = {
    "3 * x + x * x": (
        Binary(
            "+",
            Binary("*", Name("x"), Const(3.0)),
            Apply(Lambda("a", Binary("*", Name("a"), Name("a"))), Name("x")),
        ),
        [
            "  let %multiply: float32 = multiply(%x, 3.0f32);",
            "  let %multiply_1: float32 = multiply(%x, %x);",
            "  let %add: float32 = add(%multiply, %multiply_1);",
            "  %add",
        ],
    ),
    "x ** 3, by self-application": (
        Apply(POWER, Const(3.0)),
        [
            "  let %multiply: float32 = multiply(%x, %x);",
            "  let %multiply_1: float32 = multiply(%x, %multiply);",
            "  %multiply_1",
        ],
    ),
    "max(2 * x, x - 1) by case": (
        IfPositive(
            Name("x"), Binary("*", Name("x"), Const(2.0)), Binary("-", Name("x"), Const(1.0))
        ),
        [
            "  let %greater: bool = greater(%x, 0.0f32);",
            "  let %t: float32 = if (%greater) {",
            "    let %multiply: float32 = multiply(%x, 2.0f32);",
            "    %multiply",
            "  } else {",
            "    let %subtract: float32 = subtract(%x, 1.0f32);",
            "    %subtract",
            "  };",
            "  %t",
        ],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interpreter_leaves_the_arithmetic_of_its_program(name: str) -> None:
    """The first Futamura projection: compilation."""
    program, expected = PROGRAMS[name]
    compiled = relay.specialise(run, term=program)
    assert body(compiled) == expected
    assert "type " not in str(compiled)
    for x in (2.0, -1.0):
        torch.testing.assert_close(compiled(x), run(program, x))


def test_a_program_that_is_interpreted_may_go_on_for_ever() -> None:
    countdown = Apply(POWER, Name("x"))
    compiled = relay.specialise(run, term=countdown)
    torch.testing.assert_close(compiled(4.0), torch.tensor(256.0))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_and_specialisation_commute(name: str) -> None:
    program, _ = PROGRAMS[name]
    inside = relay.specialise(relay.grad(run, wrt="x"), term=program)
    outside = relay.grad(relay.specialise(run, term=program))
    assert "Term" not in str(inside)
    for x in (2.0, -1.0):
        expected = relay.grad(run, wrt="x")(program, x)
        torch.testing.assert_close(inside(x), expected)
        torch.testing.assert_close(outside(x), expected)
        torch.testing.assert_close(relay.grad(inside)(x), relay.grad(outside)(x))


@relay
def slope(x: Float, w: Float) -> Float:
    pair = (x * w, relay.tanh(x))
    return relay.grad(lambda v: v * pair[1] + pair[0])(w)


@relay
def slope_of_helpers(x: Float) -> Float:
    return relay.grad(twice_squared)(x)


@relay
def twice_squared(x: Float) -> Float:
    cell = relay.ref(squared(x))
    cell.value = squared(cell.value) + x
    return cell.value


@pytest.mark.parametrize("function", [slope_of_helpers])
def test_a_gradient_is_straight_line(function: Callable[..., torch.Tensor]) -> None:
    left = relay.specialise(function)
    assert set(calls(left)) <= {"multiply", "add", "power", "tanh", "tanh_grad"}
    torch.testing.assert_close(left(X), function(X))


def test_a_gradient_on_a_tree_that_is_known_is_straight_line() -> None:
    tree = Node(Leaf(1.0), Node(Leaf(2.0), Leaf(3.0), "b"), "a")
    left = relay.specialise(relay.grad(total, wrt="w"), tree=tree)
    assert set(calls(left)) <= {"full", "multiply", "add", "tanh", "tanh_grad"}
    torch.testing.assert_close(left(X), relay.grad(total, wrt="w")(tree, X))


def test_lists_functions_and_numbers_may_be_fixed_together() -> None:
    left = relay.specialise(polynomial, coefficients=[1.0, 2.0, 3.0])
    assert calls(left) == ["multiply", "add"] * 3 or calls(left)[-2:] == ["multiply", "add"]
    torch.testing.assert_close(left(X), polynomial([1.0, 2.0, 3.0], X))
    eighth = relay.specialise(applied, f=squared, times=3)
    assert calls(eighth) == ["multiply"] * 3
    torch.testing.assert_close(eighth(X), X**8)


def test_what_is_unknown_of_a_function_that_is_fixed_stays_a_loop() -> None:
    left = relay.specialise(applied, f=squared)
    for times in (0, 1, 3):
        torch.testing.assert_close(left(times, X), applied(squared, times, X))


def test_small_tensors_become_constants_and_large_ones_do_not() -> None:
    small = relay.specialise(affine, w=torch.tensor([1.0, 2.0]), b=3.0)
    assert "[1.0, 2.0]" in str(small)
    torch.testing.assert_close(small(torch.ones(2)), torch.tensor([4.0, 5.0]))
    w = torch.linspace(0, 1, 1000)
    large = relay.specialise(affine, w=w, b=3.0)
    assert len(str(large)) < 1_000
    torch.testing.assert_close(large(torch.ones(1000)), w + 3.0)
    cotangent = torch.ones(1000)
    _, pullback = relay.vjp(large)(torch.ones(1000))
    torch.testing.assert_close(pullback(cotangent), w)


@pytest.mark.parametrize("w", [torch.ones(3), torch.ones(3).requires_grad_()])
def test_every_transform_takes_what_is_left(w: torch.Tensor) -> None:
    left = relay.specialise(affine, w=2 * w)
    x, b, t = torch.arange(3.0), torch.tensor(1.0), torch.ones(3)
    value, tangent = relay.jvp(left, wrt="x")((x, b), (t,))
    torch.testing.assert_close(value, 2 * x + 1)
    torch.testing.assert_close(tangent, 2 * t)
    batch = relay.vmap(left, in_axes=(0, None))(torch.stack([x, t]), b)
    torch.testing.assert_close(batch, torch.stack([2 * x + 1, 2 * t + 1]))


def test_the_gradient_of_a_fixed_tensor_still_flows() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    relay.specialise(affine, w=w, b=0.0)(torch.tensor([3.0, 4.0])).sum().backward()
    torch.testing.assert_close(w.grad, torch.tensor([3.0, 4.0]))


def test_shapes_of_fixed_tensors_are_checked_at_calls() -> None:
    left = relay.specialise(affine, w=torch.ones(2), b=0.0)
    with pytest.raises(RunError):
        left(torch.ones(3))


def test_an_assertion_that_fails_is_raised_by_the_call() -> None:
    left = relay.specialise(total, tree=Node(Leaf(1.0), Leaf(2.0), "empty"))
    with pytest.raises(RunError, match="there is something in it"):
        left(1.0)


@relay
def counted(xs: list[Float], scale: int) -> tuple[int, list[Float]]:
    return len(xs) + scale, [x * scale for x in xs]


def test_results_have_the_form_that_those_of_the_function_have() -> None:
    for left, rest in (
        (relay.specialise(counted, scale=3), ([1.0, 2.0],)),
        (relay.specialise(counted, xs=[1.0, 2.0]), (3,)),
    ):
        number, scaled = left(*rest)
        assert number == 5
        assert type(number) is int
        assert [float(x) for x in scaled] == [3.0, 6.0]


def test_a_call_passes_the_parameters_that_are_left() -> None:
    with pytest.raises(RunError, match="too many positional arguments"):
        relay.specialise(power, n=5)(2.0, 5)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_deep_data_may_be_fixed(count: int) -> None:
    coefficients = [0.5] * count
    left = relay.specialise(polynomial, coefficients=coefficients)
    torch.testing.assert_close(left(0.5), polynomial(coefficients, 0.5))


def test_it_looks_and_checks_like_any_function() -> None:
    fifth = relay.specialise(power, n=5)
    assert fifth.type == "(x: Float) -> Float"
    assert fifth.check().warnings == ()
    assert "multiply" in fifth.show("host") or "*" in fifth.show("host")
    assert relay.parse(str(fifth))["specialised.power"](2.0) == 32.0
    assert "def power" in fifth.show("python") or "def " in fifth.show("python")


@relay_model
def layer(x: Tensor[Float, (2, 3)]) -> Tensor[Float, (2, 4)]:
    return relay.linear(x, out_features=4)


@relay
def loss(model: Model[layer], x: Tensor[Float, (2, 3)]) -> Float:
    return model(x).sum()


@pytest.mark.parametrize(
    ("function", "fixed", "error"),
    [
        (power, {"k": 3}, "RL350"),
        (loss, {"model": None}, "RL351"),
        (power, {"n": "three"}, "RL550"),
        (power, {"n": 2.5}, "RL550"),
        (affine, {"w": torch.ones(2, 2)}, "RL55"),
    ],
)
def test_what_cannot_be_fixed_is_an_error(
    function: object, fixed: dict[str, object], error: str
) -> None:
    with pytest.raises((CheckError, RunError)) as caught:
        relay.specialise(function, **fixed)
    assert error in str(caught.value)


def test_a_function_fixed_again_is_the_same_function() -> None:
    assert relay.specialise(power, n=5) is relay.specialise(power, n=5)
    assert relay.specialise(power, n=5) is not relay.specialise(power, n=6)
    twice = relay.specialise(applied, f=squared, times=2)
    assert twice is relay.specialise(applied, f=squared, times=2)
    coefficients = [1.0, 0.0]
    first = relay.specialise(polynomial, coefficients=coefficients)
    assert first is relay.specialise(polynomial, coefficients=[1.0, 0.0])
    coefficients[1] = -0.0
    assert first is not relay.specialise(polynomial, coefficients=coefficients)


def test_a_function_fixed_to_a_tensor_again_has_its_elements_then() -> None:
    weights = torch.ones(2)
    one = relay.specialise(affine, w=weights)
    weights.fill_(2.0)
    two = relay.specialise(affine, w=weights)
    assert one(X.expand(2), 0.0).tolist() == [1.5, 1.5]
    assert two(X.expand(2), 0.0).tolist() == [3.0, 3.0]


def test_a_function_fixed_again_reads_captured_names_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert relay.specialise(scaled, n=2)(1.0) == 4.0
    monkeypatch.setitem(globals(), "RATE", 3.0)
    assert relay.specialise(scaled, n=2)(1.0) == 9.0


def test_zeros_are_left_out_of_sums_under_fast_math() -> None:
    w, x = torch.tensor([2.0, -0.0]), torch.tensor([3.0, 1.0])
    exact, fast = (relay.specialise(affine, b=0.0, fast_math=f) for f in (False, True))
    assert calls(exact) == ["multiply", "add"]
    assert calls(fast) == ["multiply"]
    assert torch.signbit(fast(w, x)).tolist() == [False, True], "the sum with zero would be 0.0"
    torch.testing.assert_close(fast(w, x), exact(w, x))
    assert fast is relay.specialise(affine, b=0.0, fast_math=True)


@relay
def options_of_its_own(x: Float, fast_math: bool) -> Float:
    return x + 0.0 if fast_math else x


def test_a_parameter_with_the_name_of_an_option_is_passed() -> None:
    assert relay.specialise(options_of_its_own, x=2.0)(fast_math=True) == 2.0
    for f in (options_of_its_own, relay.specialise(options_of_its_own)):
        with pytest.raises(CheckError, match="RL352"):
            relay.specialise(f, x=2.0, fast_math=True)


def test_what_is_left_is_specialised_again() -> None:
    b, w = torch.ones(()), torch.full((1000,), 2.0)  # `w` stays an argument
    of_x = relay.specialise(relay.specialise(affine, w=w), b=b)
    assert calls(of_x) == ["multiply", "add"]
    torch.testing.assert_close(of_x(w), w * w + 1.0)
    assert relay.specialise(of_x, x=w)().shape == (1000,)
    with pytest.raises(CheckError, match="RL350"):
        relay.specialise(of_x, w=w)


TEXT = """#[version = "0.0.5"]
def @power(%x: float32, %n: int32) -> float32 {
  if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) } }
def @first[A](%p: (A, A), %last: bool) -> A { if (%last) { %p.1 } else { %p.0 } }
def @written(%r: ref(float32), %x: float32) { ref_write(%r, %x) }
"""


def test_functions_of_a_text_are_specialised() -> None:
    module = relay.parse(TEXT)
    cube = relay.specialise(module["power"], n=3)
    assert calls(cube) == ["multiply", "multiply"]
    assert (cube(2.0), relay.grad(cube)(2.0)) == (8.0, 12.0)
    assert relay.specialise(relay.grad(module["power"], wrt="x"), n=3)(2.0) == 12.0
    assert relay.specialise(module["first"], last=True)((1.0, 2.0)) == 2.0
    for name, fixed, code in (
        ("power", {"m": 3}, "RL350"),
        ("written", {"r": 2.0}, "RL351"),
        ("power", {"n": "three"}, "RL55"),
    ):
        with pytest.raises((CheckError, RunError), match=code):
            relay.specialise(module[name], **fixed)
