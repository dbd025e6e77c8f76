"""Tensors of any rank, `Tensor[Float, (N, ...)]`: an entry for each rank of the arguments."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Int, Model, RunError, Tensor, relay, relay_model

N, K = Dim("N"), Dim("K")
SHAPES = [(3,), (3, 2), (3, 2, 4), (3, 1, 2, 1, 2)]


@relay
def total(x: Tensor[Float, (N, ...)]) -> Float:
    return relay.sum(relay.exp(x))


@relay
def double(x: Tensor[Float, ...]) -> Tensor[Float, ...]:
    return x * 2.0


@relay
def scaled(
    a: Tensor[Float, ...], b: Tensor[Float, (..., K)], c: Tensor[Float, (K,)]
) -> tuple[Tensor[Float, ...], Tensor[Float, (..., K)]]:
    return relay.tanh(a), b * c


@relay_model
def net(x: Tensor[Float, (..., 4)]) -> Tensor[Float, (..., 3)]:
    return relay.linear(x, out_features=3)


@relay
def loss(x: Tensor[Float, (..., 4)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def step(model: Model[net], x: Tensor[Float, (N, ..., 4)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@pytest.mark.parametrize("shape", SHAPES)
def test_a_function_is_called_at_any_rank(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    torch.testing.assert_close(total(x), x.exp().sum())
    torch.testing.assert_close(total.interpret(x), x.exp().sum())
    torch.testing.assert_close(double(x), x * 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_torch(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, requires_grad=True)
    torch.testing.assert_close(relay.grad(total)(x.detach()), x.detach().exp())
    total(x).backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_there_is_one_entry_for_each_rank() -> None:
    @relay
    def cubed(x: Tensor[Float, (N, ...)]) -> Tensor[Float, (N, ...)]:
        return x * x * x

    for shape in [(2,), (3,), (2, 3), (4, 5)]:
        x = torch.randn(shape)
        torch.testing.assert_close(cubed(x), x**3)
    assert cubed.cache_info().entries == 2


def test_dots_may_stand_for_no_size() -> None:
    assert double(3.0) == 6.0
    assert double(np.float32(3.0)) == 6.0
    torch.testing.assert_close(double(np.ones((2, 2), np.float32)), torch.full((2, 2), 2.0))


@pytest.mark.parametrize(("a", "b"), [((), (3,)), ((2,), (4, 3)), ((2, 2), (5, 1, 3))])
def test_parameters_may_have_different_ranks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y, z = torch.randn(a), torch.randn(b), torch.randn(3)
    torch.testing.assert_close(scaled(x, y, z), (x.tanh(), y * z))


def test_sizes_beside_the_dots_agree() -> None:
    with pytest.raises(RunError, match="dimension 0 of `c` is 3, not 2"):
        scaled(torch.ones(2), torch.ones(3, 2), torch.ones(3))


def test_a_program_uses_a_function_at_several_ranks() -> None:
    @relay
    def both(x: Tensor[Float, (N,)], y: Tensor[Float, (N, 3)]) -> Float:
        return total(double(x)) + total(double(y)) + total(double(y)[0]) + double(1)

    x, y = torch.randn(2), torch.randn(2, 3)
    wanted = (2 * x).exp().sum() + (2 * y).exp().sum() + (2 * y[0]).exp().sum() + 2
    torch.testing.assert_close(both(x, y), wanted)
    torch.testing.assert_close(both.interpret(x, y), wanted)
    torch.testing.assert_close(relay.grad(both, wrt="x")(x, y), 2 * (2 * x).exp())


def test_a_program_takes_gradients_at_several_ranks() -> None:
    @relay
    def both(x: Tensor[Float, (N, 3)]) -> tuple[Tensor[Float, (N, 3)], Tensor[Float, (3,)]]:
        return relay.grad(total)(x), relay.grad(total)(x[0])

    x = torch.randn(2, 3)
    torch.testing.assert_close(both(x), (x.exp(), x[0].exp()))


def test_local_functions_take_any_rank() -> None:
    @relay
    def norms(x: Tensor[Float, (N, 3)]) -> Float:
        def norm(v: Tensor[Float, ...]) -> Float:
            return relay.sum(v * v)

        return norm(x) + norm(x[0]) + norm(2.0)

    x = torch.randn(2, 3)
    torch.testing.assert_close(norms(x), (x * x).sum() + (x[0] * x[0]).sum() + 4)


def test_functions_are_passed_and_recursive() -> None:
    @relay
    def applied(f: Fn[[Tensor[Float, ...]], Float], x: Tensor[Float, ...]) -> Float:
        return f(x)

    @relay
    def doubled(x: Tensor[Float, ...], n: Int) -> Tensor[Float, ...]:
        return x if n == 0 else doubled(x * 2.0, n - 1)

    for x in (torch.randn(2), torch.randn(2, 3)):
        torch.testing.assert_close(applied(total, x), x.exp().sum())
        torch.testing.assert_close(doubled(x, 3), 8 * x)


def test_dots_stand_in_lists_tuples_and_optionals() -> None:
    @relay
    def summed(
        xs: list[Tensor[Float, ...]],
        pair: tuple[Tensor[Float, (..., N)], Int],
        last: Tensor[Float, ...] | None,
    ) -> Float:
        found = relay.sum(pair[0])
        for x in xs:
            found += relay.sum(x)
        return found if last is None else found + relay.sum(last)

    assert summed([torch.ones(2, 2)], (torch.ones(3), 1), None) == 7
    assert summed([], (torch.ones(3, 1), 1), torch.ones(2)) == 5
    with pytest.raises(RunError, match=r"`xs\[1\]`"):
        summed([torch.ones(2, 2), torch.ones(2)], (torch.ones(3), 1), None)


def test_check_type_and_show_are_those_of_the_fewest_sizes() -> None:
    @relay
    def rows(x: Tensor[Float, (N, ...)]) -> Tensor[Float, ...]:
        return relay.sum(x, dim=2)

    rows.check()
    assert rows.type == "(x: Tensor[Float, (N, x1, x2)]) -> Tensor[Float, (N, x1)]"
    assert "Tensor[(N, x1, x2), float32]" in rows.show()
    with pytest.raises(CheckError, match="stands for 1 size here"):
        rows(torch.ones(2, 2))
    torch.testing.assert_close(rows(torch.ones(2, 2, 3, 1)), torch.full((2, 2, 1), 3.0))


@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 3, 4)])
def test_a_model_runs_trains_and_exports_at_any_rank(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    model = relay.create_model(net, seed=0)
    x = torch.randn(shape)
    weight, bias = model.params["linear_1.weight"], model.params["linear_1.bias"]
    wanted = torch.nn.functional.linear(x, weight, bias)
    torch.testing.assert_close(model(x), wanted)
    exported = relay.export_model(model)
    exported.save(tmp_path / "net.relay")
    for each in (
        exported,
        pickle.loads(pickle.dumps(exported)),
        relay.load_model(tmp_path / "net.relay"),
        exported.to_torch(x).module(),
    ):
        torch.testing.assert_close(each(x), wanted)
        torch.testing.assert_close(each(x), wanted)
    grads = relay.grad(model, loss, (x,))
    (want,) = torch.autograd.grad((model(x) ** 2).mean(), [model.linear_1.weight])
    torch.testing.assert_close(grads["linear_1.weight"], want)


def test_a_step_of_training_takes_any_rank() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.randn(5, 4)
    before = step(model, x)
    assert step(model, x.reshape(5, 1, 4)) < before
    step.check()


def test_loaded_models_say_what_they_take(tmp_path: Path) -> None:
    relay.export_model(relay.create_model(net, seed=0)).save(tmp_path / "net.relay")
    loaded = relay.load_model(tmp_path / "net.relay")
    with pytest.raises(RunError, match=r"`x` is Tensor\[Float, \(\.\.\., 4\)\]"):
        loaded(torch.ones(4, dtype=torch.float64))


def test_a_text_says_dots_and_is_called() -> None:
    text = """#[pyrelay = "1"]

def @main[N: Dim](%x: Tensor[(N, ...), float32]) -> Tensor[(N, ...), float32] {
  multiply(%x, 2.0f32)
}
"""
    module = relay.parse(text)
    assert str(module) == text
    module.check()
    module["main"].check()
    for shape in SHAPES:
        x = torch.randn(shape)
        torch.testing.assert_close(module["main"](x), x * 2)
        torch.testing.assert_close(relay.parse(module.to_json())["main"](x), x * 2)
