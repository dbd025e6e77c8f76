"""Calls from scripts: arguments, results, guards, static parameters, gradients and autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyrelay import Bool, CheckError, Dim, Float, Fn, Int, RunError, Tensor, relay

N, M = Dim("N"), Dim("M")
scale = 3.0
TABLE = relay.const(np.arange(12, dtype=np.float32).reshape(3, 4))
OFFSETS = torch.tensor([1.0, 2.0, 3.0, 4.0])


@relay
def double(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x * 2


@relay
def dot(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Float:
    return (x * y).sum()


@relay
def power(x: Float, n: int) -> Float:
    result = 1.0
    while n > 0:
        result = result * x
        n = n - 1
    return result


@relay
def factorial(n: Int) -> Int:
    return 1 if n <= 1 else n * factorial(n - 1)


@relay
def identity(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x


def test_tensors_arrays_and_dlpack_are_taken() -> None:
    x = torch.arange(3.0)
    assert torch.equal(double(x), x * 2)
    assert torch.equal(double(np.arange(3, dtype=np.float32)), x * 2)

    class Foreign:
        def __dlpack__(self, **kwargs: object) -> object:
            return x.__dlpack__()

        def __dlpack_device__(self) -> object:
            return x.__dlpack_device__()

    assert torch.equal(double(Foreign()), x * 2)


def test_arrays_that_run_backwards_or_in_another_byte_order_are_taken() -> None:
    array = np.arange(3, dtype=np.float32)
    assert torch.equal(double(array[::-1]), torch.tensor([4.0, 2.0, 0.0]))
    assert torch.equal(double(array.astype(">f4")), torch.tensor([0.0, 2.0, 4.0]))
    assert torch.equal(identity(array[::-1]), torch.tensor([2.0, 1.0, 0.0]))
    for wrong in (np.array(["a", "b"]), np.array([None])):
        with pytest.raises(RunError, match=r"`double` got Tensor"):
            double(wrong)


def test_wrong_arguments_are_refused_with_the_way_out() -> None:
    with pytest.raises(RunError, match=r"cast it: x\.float\(\)"):
        double(torch.arange(3))
    with pytest.raises(RunError, match=r"cast it: x\.astype\(np\.float32\)"):
        double(np.arange(3.0))
    with pytest.raises(RunError, match="unsqueeze"):
        double(torch.tensor(1.0))
    with pytest.raises(RunError, match=r"torch\.tensor"):
        double([1.0, 2.0])
    with pytest.raises(RunError, match="missing a required argument"):
        double()
    with pytest.raises(RunError, match="multiple values"):
        double(torch.ones(2), x=torch.ones(2))


def test_sizes_that_share_a_name_must_agree() -> None:
    assert dot(torch.ones(3), torch.ones(3)) == 3
    with pytest.raises(RunError) as caught:
        dot(torch.ones(3), torch.ones(4))
    assert caught.value.codes == ("RL551",)
    assert "dimension 0 of `y` is 4, not 3" in str(caught.value)


def test_an_assumption_is_checked_at_entry() -> None:
    @relay
    def add(x: Tensor[Float, (N,)], y: Tensor[Float, (M,)]) -> Float:
        return (x + y).sum()

    assert "where" in add.type
    assert add(torch.ones(2), torch.ones(2)) == 4
    with pytest.raises(RunError) as caught:
        add(torch.ones(2), torch.ones(3))
    assert caught.value.codes == ("RL505",)


def test_results_are_fresh() -> None:
    x = torch.arange(3.0)
    y = identity(x)
    assert y is not x
    y += 1
    assert torch.equal(x, torch.arange(3.0))

    @relay
    def constants() -> tuple[Tensor[Float, (2,)], Float, Tensor[Float, (4,)]]:
        return relay.zeros((2,)), 1.0, relay.const(OFFSETS)

    for part in constants():
        part += 1
    zeros, one, offsets = constants()
    assert torch.equal(zeros, torch.zeros(2))
    assert one == 1
    assert torch.equal(offsets, OFFSETS)

    @relay
    def turned(x: Tensor[Float, (N, M)]) -> tuple[Tensor[Float, (M, N)], Tensor[Float, (M, N)]]:
        return x.T, (x * 2).T

    x = torch.ones(2, 3)
    first, _ = turned(x)
    first += 1
    assert torch.equal(x, torch.ones(2, 3))


def test_scalars_come_back_as_annotated() -> None:
    @relay
    def as_number(x: Tensor[Float, (N,)]) -> float:
        return x.sum()

    @relay
    def as_flag(x: Int) -> bool:
        return x > 2

    @relay
    def both(x: Int) -> tuple[Int, Bool]:
        return x + 1, x > 2

    assert as_number(torch.ones(3)) == 3.0
    assert isinstance(as_number(torch.ones(3)), float)
    assert as_flag(3) is True
    first, second = both(3)
    assert first.dtype is torch.int64
    assert second.dtype is torch.bool
    assert factorial(20).item() == 2432902008176640000


def test_loops_and_recursion_run() -> None:
    assert power(torch.tensor(2.0), 10) == 1024
    assert power(2.0, 3) == 8


def test_a_captured_number_that_changes_changes_the_program() -> None:
    global scale

    @relay
    def scaled(x: Float) -> Float:
        return x * scale

    assert scaled(2.0) == 6
    scale = 5.0
    assert scaled(2.0) == 10
    scale = 3.0
    assert scaled(2.0) == 6


def test_captured_tensors_are_constants_when_said_so() -> None:
    @relay
    def looked_up(i: Int) -> Tensor[Float, (4,)]:
        return TABLE[i] + relay.const(OFFSETS)

    assert torch.equal(looked_up(1), torch.tensor([5.0, 7.0, 9.0, 11.0]))


def test_static_parameters_make_programs_of_their_own() -> None:
    @relay
    def tiled(x: Tensor[Float, (N,)], *, times: int, negate: bool = False) -> Tensor[Float, (M,)]:
        y = x if times == 1 else relay.tile(x, (times,))
        return -y if negate else y

    x = torch.arange(2.0)
    assert tiled(x, times=3).shape == (6,)
    assert torch.equal(tiled(x, times=1, negate=True), -x)
    assert tiled.cache_info().entries == 2


def test_gradients_of_functions() -> None:
    x, y = torch.randn(4), torch.randn(4)
    gx, gy = relay.grad(dot)(x, y)
    assert torch.allclose(gx, y)
    assert torch.allclose(gy, x)
    assert torch.allclose(relay.grad(dot, wrt="y")(x, y), x)
    value, gradient = relay.value_and_grad(dot, wrt="x")(x, y)
    assert torch.allclose(value, dot(x, y))
    assert torch.allclose(gradient, y)
    assert torch.allclose(relay.grad(power)(torch.tensor(3.0), 4), torch.tensor(108.0))
    second = relay.grad(relay.grad(power))(torch.tensor(3.0), 4)
    assert torch.allclose(second, torch.tensor(108.0))


def test_a_pullback_maps_cotangents() -> None:
    x = torch.randn(3)
    value, pullback = relay.vjp(double)(x)
    assert torch.allclose(value, 2 * x)
    assert torch.allclose(pullback(torch.ones(3)), torch.full((3,), 2.0))


def test_the_gradient_of_a_vector_is_refused() -> None:
    with pytest.raises(CheckError) as caught:
        relay.grad(double)(torch.ones(2))
    assert "vjp" in str(caught.value)


def test_calls_join_autograd_only_when_asked() -> None:
    x = torch.randn(3, requires_grad=True)
    dot(x, x).backward()
    assert torch.allclose(x.grad, 2 * x)
    assert not dot(x.detach(), x.detach()).requires_grad
    with torch.no_grad():
        assert not dot(x, x).requires_grad
    composed = (double(x) ** 2).sum() + dot(x, double(x))
    composed.backward()


def test_the_evaluator_agrees_with_the_compiled_program() -> None:
    x = torch.randn(4)
    assert torch.allclose(dot.interpret(x, x), dot(x, x))
    assert torch.allclose(power.interpret(torch.tensor(2.0), 5), torch.tensor(32.0))


def test_every_stage_can_be_shown() -> None:
    for stage in ("source", "translated", "typed", "anf", "grad", "simplified", "host"):
        assert "dot" in dot.show(stage)
    assert "# kernel.1" in dot.show("triton")
    assert "+++" in dot.diff("typed", "simplified") or dot.diff("typed", "simplified") == ""
    assert dot.type == "(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Float"


def test_functions_are_passed_to_functions() -> None:
    @relay
    def twice(f: Fn[[Float], Float], x: Float) -> Float:
        return f(f(x))

    @relay
    def square(x: Float) -> Float:
        return x * x

    @relay
    def fourth(x: Float) -> Float:
        return twice(square, x)

    @relay
    def shifted(x: Float, by: Float) -> Float:
        return twice(lambda v: v + by, x)

    assert fourth(2.0) == 16
    assert shifted(1.0, 2.0) == 5
    assert relay.grad(fourth)(torch.tensor(2.0)) == 32
    assert twice(square, torch.tensor(3.0)) == 81


def test_operators_apply_to_tensors_in_scripts() -> None:
    x = torch.randn(3, 4)
    assert torch.equal(relay.argmax(x, dim=1), x.argmax(1))
    assert torch.allclose(relay.softmax(x, dim=1), x.softmax(1))
    with pytest.raises(CheckError):
        relay.matmul(x, x)


def test_a_call_that_would_compile_can_be_refused() -> None:
    import pyrelay

    @relay
    def fresh(x: Float) -> Float:
        return x + 1

    with pyrelay.no_compile(), pytest.raises(RunError) as caught:
        fresh(1.0)
    assert caught.value.codes == ("RL555",)
    fresh(1.0)
    with pyrelay.no_compile():
        assert fresh(2.0) == 3


def test_a_users_operator_is_typed_and_differentiated() -> None:
    from pyrelay.ir.op import Sample, TensorSpec
    from pyrelay.ir.rules import same_as_operand

    @relay.operator(
        type_rule=same_as_operand(),
        grad=lambda p: (p.g * 3.0 * p.args[0] * p.args[0],),
        samples=[Sample((TensorSpec((3,)),))],
    )
    def cube(x: torch.Tensor) -> torch.Tensor:
        """The third power."""
        return x**3

    @relay
    def total(x: Tensor[Float, (N,)]) -> Float:
        return cube(x).sum()

    x = torch.randn(5)
    assert torch.allclose(total(x), (x**3).sum())
    assert torch.allclose(relay.grad(total)(x), 3 * x**2)
    assert torch.allclose(cube(x), x**3)


def test_numbers_follow_the_devices_of_tensors_and_devices_do_not_mix() -> None:
    with pytest.raises(RunError) as caught:
        dot(torch.ones(3), torch.ones(3, device="meta"))
    assert caught.value.codes == ("RL553",)


def test_names_to_differentiate_in_may_stand_without_wrt() -> None:
    @relay
    def product(x: Float, y: Float) -> Float:
        return x * y

    assert relay.grad(product, "y")(2.0, 5.0) == 2.0
    assert [g.item() for g in relay.grad(product, ("x", "y"))(2.0, 5.0)] == [5.0, 2.0]
    value, by_x = relay.value_and_grad(product, "x")(2.0, 5.0)
    assert (value.item(), by_x.item()) == (10.0, 5.0)


def test_what_is_no_name_to_differentiate_in_is_refused() -> None:
    @relay
    def double(x: Float) -> Float:
        return x * 2.0

    with pytest.raises(RunError, match="`wrt` is one name of a parameter"):
        relay.grad(double, double)
    with pytest.raises(RunError, match="`wrt` is one name of a parameter"):
        relay.grad(double, "x", wrt="x")


def test_none_inside_a_result_is_none() -> None:
    @relay
    def nested(x: Float):
        return (x, (None, x)), None

    @relay
    def given(pair: tuple[Float, None]):
        return pair

    one = torch.tensor(1.0)
    for run in (nested, nested.interpret):
        assert run(1.0) == ((one, (None, one)), None)
    assert given((1.0, None)) == (one, None)
    x = torch.tensor(2.0, requires_grad=True)
    ((value, (nothing, _)), _) = nested(x)
    value.backward()
    assert (nothing, x.grad) == (None, one)


def test_a_number_beyond_its_dtype_is_refused_in_every_call() -> None:
    @relay
    def doubled(x: Float, xs: list[Float]) -> Float:
        return x * 2.0 + relay.stack(xs).sum()

    @relay
    def alone(x: Float) -> Float:
        return x * 2.0

    for _ in range(3):  # the first calls take another path than the rest
        assert alone(1.0) == 2.0
        assert alone(2**70) == 2.0**71
        assert alone(float("-inf")) == -torch.inf
        for wrong in (1e300, 10**400):
            with pytest.raises(RunError, match="does not fit into 32 bits"):
                alone(wrong)
            with pytest.raises(RunError, match=r"`xs\[1\]`"):
                doubled(1.0, [0.0, wrong])
        assert doubled(1.0, [float("inf"), 0.5]) == torch.inf
