"""Sizes that arguments show only inside larger dims: `N` of a tensor of shape `(2*N + 1,)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, RunError, Tensor, relay, relay_model
from pyrelay.config import options
from pyrelay.ir.dims import Dim as SizeExpression
from pyrelay.ir.equations import solutions
from pyrelay.prelude import List
from pyrelay.runtime.border.argument_sizes import NoSize, ShownSizes

N, K, M, P = Dim("N"), Dim("K"), Dim("M"), Dim("P")


def everywhere(f: Any, *args: Any) -> Any:
    """Return the value of a function, on which all executors agree."""
    found = f(*args)
    torch.testing.assert_close(f.interpret(*args), found)
    for lowering in ("evaluator", "torch-regions"):
        with options(lowering=lowering):
            torch.testing.assert_close(f(*args), found)
    return found


def count(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.float32)


@relay
def first_half(x: Tensor[Float, (2 * N,)]):
    y = x * 2.0
    return y[:N]


@relay
def before_the_middle(x: Tensor[Float, (2 * N + 1,)]):
    return x[:N]


@relay
def rows(x: Tensor[Float, (N * K,)], w: Tensor[Float, (K,)]):
    return relay.reshape(x, (N, K)) @ w


@relay
def two_equations(x: Tensor[Float, (N + M,)], y: Tensor[Float, (N - M,)]):
    return x[:N], y[:M]


@relay
def in_turn(x: Tensor[Float, (N + M,)], y: Tensor[Float, (M * K,)], z: Tensor[Float, (3 * K,)]):
    return x[:N], relay.reshape(y, (M, K)), relay.reshape(z, (3, K))


def test_a_size_is_solved_from_a_multiple_of_it() -> None:
    torch.testing.assert_close(everywhere(first_half, count(6)), count(3) * 2)


def test_a_size_is_solved_from_a_sum() -> None:
    torch.testing.assert_close(everywhere(before_the_middle, count(7)), count(3))


def test_a_size_is_solved_from_a_product_whose_other_factor_is_known() -> None:
    w = torch.tensor([2.0, 3.0])
    torch.testing.assert_close(everywhere(rows, count(6), w), count(6).reshape(3, 2) @ w)


def test_sizes_are_solved_from_several_arguments_together() -> None:
    a, b = everywhere(two_equations, count(6), count(4))
    assert (a.tolist(), b.tolist()) == ([0, 1, 2, 3, 4], [0])


def test_the_order_of_the_equations_is_found() -> None:
    a, b, c = everywhere(in_turn, count(5), count(6), count(9))
    torch.testing.assert_close(a, count(3))
    torch.testing.assert_close(b, count(6).reshape(2, 3))
    torch.testing.assert_close(c, count(9).reshape(3, 3))


@relay
def product_of_halves(x: Tensor[Float, (2 * N,)]) -> Float:
    return (x[:N] * x[N:]).sum()


@relay
def sum_of_rows(x: Tensor[Float, (N * K,)], w: Tensor[Float, (K,)]) -> Float:
    y = relay.reshape(x, (N, K)) @ w
    return (y * y).sum()


def test_gradients_of_such_functions_are_those_of_torch() -> None:
    x, w = torch.randn(6, requires_grad=True), torch.randn(2, requires_grad=True)
    (x[:3] * x[3:]).sum().backward()
    torch.testing.assert_close(everywhere(relay.grad(product_of_halves), x.detach()), x.grad)
    x.grad = None
    ((x.reshape(3, 2) @ w) ** 2).sum().backward()
    of_x, of_w = everywhere(relay.grad(sum_of_rows), x.detach(), w.detach())
    torch.testing.assert_close(of_x, x.grad)
    torch.testing.assert_close(of_w, w.grad)


def test_a_gradient_of_a_gradient_solves_them_too() -> None:
    twice = relay.grad(relay.grad(sum_of_rows_of_x_twice))
    torch.testing.assert_close(twice(torch.tensor(3.0)), torch.tensor(49.0))


@relay
def sum_of_rows_of_x_twice(s: Float) -> Float:
    return sum_of_rows(relay.ones((2, 7)).reshape((14,)) * s * 0.5, relay.full((7,), 1.0) * s**0.0)


@relay
def of_any_size(x: Tensor[Float, (M,)]):
    return first_half(x)


@relay
def of_four(x: Tensor[Float, (4 * M,)]):
    return first_half(first_half(x))


@relay
def of_selected(x: Tensor[Float, (M,)]):
    return first_half(x[x > 0.5])


@relay
def divided(x: Tensor[Float, (M,)], w: Tensor[Float, (K,)]):
    return rows(x, w) + 1.0


def test_a_call_divides_and_the_type_states_that_nothing_is_left() -> None:
    text = "(x: Tensor[Float, (M,)]) -> Tensor[Float, (M // 2,)] where M % 2 == 0"
    assert str(of_any_size.type) == text
    torch.testing.assert_close(everywhere(of_any_size, count(6)), count(3) * 2)
    assert str(divided.type).endswith("-> Tensor[Float, (M // K,)] where M % K == 0")
    assert everywhere(divided, count(6), torch.ones(3)).tolist() == [4, 13]
    assert "where" not in str(of_four.type)
    assert everywhere(of_four, count(8)).tolist() == [0, 4]


@pytest.mark.parametrize("length", [5, 7])
def test_a_remainder_stops_the_call_at_the_argument_or_the_line(length: int) -> None:
    for f, code in ((first_half, "RL561"), (of_any_size, "RL505")):
        for call in (f, f.interpret):
            with pytest.raises(RunError) as caught:
                call(count(length))
            assert caught.value.codes == (code,)
    selected = torch.ones(length)
    with pytest.raises(RunError) as caught:
        of_selected(selected)
    assert caught.value.codes == ("RL508",)
    assert of_selected(torch.cat((selected, selected[:1]))).shape == ((length + 1) // 2,)


def test_no_size_is_negative() -> None:
    with pytest.raises(RunError) as caught:
        before_the_middle(count(0))
    assert caught.value.codes == ("RL561",)


def test_a_factor_that_is_zero_determines_nothing() -> None:
    with pytest.raises(RunError) as caught:
        rows(count(0), count(0))
    assert "the size `N` cannot be found" in str(caught.value)


@relay
def factors(x: Tensor[Float, (N * K,)]):
    return relay.reshape(x, (N, K))


@relay
def rounded(x: Tensor[Float, (N // 2,)]):
    return relay.zeros((N,)), x


@relay
def of_a_square(x: Tensor[Float, (N * N,)]):
    return x.sum()


@relay
def of_a_square_of_any(x: Tensor[Float, (M,)]):
    return of_a_square(x)


@pytest.mark.parametrize(
    ("f", "code"), [(factors, "RL158"), (rounded, "RL158"), (of_a_square_of_any, "RL227")]
)
def test_what_cannot_be_solved_is_refused_before_anything_runs(f: Any, code: str) -> None:
    with pytest.raises(CheckError) as caught:
        f.check()
    assert caught.value.codes == (code,)


@relay
def square(x: Tensor[Float, (N * N,)]) -> Tensor[Float, (N, N)]:
    return relay.reshape(x, (N, N))


@relay
def cubes(x: Tensor[Float, (K * N * N * N + 1,)], w: Tensor[Float, (K,)]) -> Float:
    y = relay.reshape(x[1:], (K, N, N * N)).sum(dim=(1, 2))
    return (y * w * w).sum()


@relay
def of_nine(x: Tensor[Float, (9,)], y: Tensor[Float, (M,)]):
    bordered = relay.ones(((M + 1) * (M + 1),))
    return square(x), square(bordered)


def test_a_size_is_solved_from_a_power_of_it() -> None:
    torch.testing.assert_close(everywhere(square, count(9)), count(9).reshape(3, 3))
    x, w = count(17), torch.tensor([2.0, 3.0], requires_grad=True)
    (x[1:].reshape(2, 8).sum(1) * w * w).sum().backward()
    of_x, of_w = everywhere(relay.grad(cubes), x, w.detach())
    torch.testing.assert_close(of_w, w.grad)
    assert of_x.tolist() == [0, *[4] * 8, *[9] * 8]
    threes, fours = everywhere(of_nine, count(9), count(3))
    assert (threes.shape, fours.shape) == ((3, 3), (4, 4))


@relay
def of_eight(x: Tensor[Float, (8,)]):
    return square(x)


def test_what_is_no_square_is_refused() -> None:
    with pytest.raises(CheckError) as refused:
        of_eight.check()
    assert "no size to the power of 2 is 8" in str(refused.value)
    with pytest.raises(RunError) as caught:
        square(count(8))
    assert caught.value.codes == ("RL561",)
    with pytest.raises(RunError) as caught:
        of_squares([Squared(count(4)), Squared(count(5))])
    assert caught.value.codes == ("RL561",)


@dataclass(frozen=True)
class Squared:
    flat: Tensor[Float, (P * P,)]


@relay
def of_squares(items: List[Squared]) -> Float:
    total = 0.0
    for item in items:
        total += relay.trace(square(item.flat))
    return total


def test_squares_in_data_have_sizes_of_their_own() -> None:
    torch.testing.assert_close(
        everywhere(of_squares, [Squared(count(4)), Squared(count(9))]), torch.tensor(15.0)
    )


@relay
def doubled_product(x: Tensor[Float, (N * K,)]):
    return x * 2.0


@relay
def of_a_product_of_any(x: Tensor[Float, (M,)]):
    return doubled_product(x) + x


def test_a_size_that_nobody_needs_is_not_solved() -> None:
    assert everywhere(of_a_product_of_any, count(3)).tolist() == [0, 3, 6]
    assert of_a_square(count(9)) == 36
    with pytest.raises(RunError) as caught:
        of_a_square(count(8))
    assert caught.value.codes == ("RL561",)


@relay
def loops(x: Tensor[Float, (2 * N,)], n: int):
    total = relay.zeros((N,))

    def thirds(y: Tensor[Float, (3 * K,)]):
        return y[:K].sum()

    for _ in range(n):
        total = total + x[:N] * thirds(relay.cat((x, x, x)))
    return total


def test_loops_local_functions_and_captured_values_solve_them() -> None:
    torch.testing.assert_close(everywhere(loops, count(6), 3), count(3) * 45)


@dataclass(frozen=True)
class Pair:
    joined: Tensor[Float, (2 * P,)]


@relay
def of_data(pairs: List[Pair]) -> Float:
    total = 0.0
    for pair in pairs:
        total += first_half(pair.joined).sum()
    return total


def test_sizes_are_solved_from_fields_of_data() -> None:
    pairs = [Pair(count(4)), Pair(count(6))]
    torch.testing.assert_close(everywhere(of_data, pairs), torch.tensor(8.0))
    with pytest.raises(RunError):
        of_data([Pair(count(3))])


@relay_model
def halving(x: Tensor[Float, (N, 2 * K)]):
    a, b = x[:, :K], x[:, K:]
    return relay.linear(a * relay.sigmoid(b), out_features=K)


def test_a_model_solves_them() -> None:
    model = relay.create_model(halving, dims={K: 3}, seed=0)
    x = torch.randn(2, 6)
    wanted = torch.nn.functional.linear(x[:, :3] * torch.sigmoid(x[:, 3:]), *model.parameters())
    torch.testing.assert_close(model(x), wanted)
    torch.testing.assert_close(relay.export_model(model)(x), wanted)


@relay
def folded(x: Tensor[Float, (2 * N,)]) -> Float:
    return (x[0] * x[1]) if N == 1 else folded(x[:N] + x[N:])


def test_a_recursion_over_halves_is_differentiated() -> None:
    x = torch.randn(8, requires_grad=True)
    y = x
    while len(y) > 2:
        y = y[: len(y) // 2] + y[len(y) // 2 :]
    (y[0] * y[1]).backward()
    torch.testing.assert_close(everywhere(folded, x.detach()), (y[0] * y[1]).detach())
    torch.testing.assert_close(everywhere(relay.grad(folded), x.detach()), x.grad)


@relay
def last(x: Tensor[Float, (N,)]) -> Float:
    return x[0] * x[0] if N == 1 else last(x[1:])


def test_a_tail_call_at_another_size_is_differentiated() -> None:
    found = everywhere(relay.grad(last), torch.tensor([1.0, 2.0, 3.0]))
    assert found.tolist() == [0, 0, 6]


@relay
def compares(x: Tensor[Float, (N,)], y: Tensor[Float, (K,)]):
    return N == 1, N != 1, N == K, N in (1, 3), f"{N} of {N + 1}"


def test_a_named_size_is_compared_as_the_number_that_it_is() -> None:
    shown = [v.item() if isinstance(v, torch.Tensor) else v for v in compares(count(1), count(1))]
    assert shown == [True, False, True, True, "1 of 2"]
    shown = [v.item() if isinstance(v, torch.Tensor) else v for v in compares(count(3), count(1))]
    assert shown == [False, True, False, True, "3 of 4"]


def test_elimination_uses_only_what_is_known() -> None:
    n, k = SizeExpression.of("N"), SizeExpression.of("K")
    assert [s.name for s in solutions([n * 2 + k, n + k], ["N", "K"])] != []
    assert {s.name for s in solutions([n * 2 + k, n + k], ["N", "K"])} == {"N", "K"}
    assert solutions([n * k], ["N"]) == []
    assert [s.name for s in solutions([n * k, k * 3], ["N"])] == ["K", "N"]
    assert solutions([n // 2], ["N"]) == []
    assert [(s.name, s.power) for s in solutions([n * n * 3], ["N"])] == [("N", 2)]
    assert {s.name for s in solutions([n * n + k, n * n - k], ["N", "K"])} == {"N", "K"}
    assert solutions([n * n + n], ["N"]) == []


def test_a_polynomial_that_is_a_power_has_a_root() -> None:
    n, k = SizeExpression.of("N"), SizeExpression.of("K")
    root = n * 2 + k + 3
    assert (root * root).exact_root(2) == root
    assert (root * root * root).exact_root(3) == root
    assert (root * root + 1).exact_root(2) is None
    assert (n * n * 2).exact_root(2) is None
    assert (n * k).exact_root(2) is None


def test_values_of_dims_are_solved_for_names() -> None:
    n, k = SizeExpression.of("N"), SizeExpression.of("K")
    assert ShownSizes({n + k: 5, n - k: 1}).names == {"N": 3, "K": 2}
    assert ShownSizes({n * n * n + n: 30}).names == {"N": 3}
    assert ShownSizes({n // 2: 3}).names == {}
    with pytest.raises(NoSize):
        ShownSizes({n * n: 8})
