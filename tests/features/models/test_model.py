"""Models: parameters by call site, torch's own interchange, modes, state, updates and export."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrelay import CheckError, Dim, Float, Int, Model, RunError, Tensor, relay, relay_model

N, K = Dim("N"), Dim("K")


@relay_model
def perceptron(x: Tensor[Float, (N, 4)], *, hidden: int = 8) -> Tensor[Float, (N, 3)]:
    h = relay.tanh(relay.linear(x, out_features=hidden))
    out = relay.linear(h, out_features=3)
    return out  # noqa: RET504  parameters are named after it


@relay
def loss(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(perceptron(x), y)


@relay
def train(
    model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)], steps: Int
) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, grads, lr=0.5)
    return value


@relay_model
def block(x: Tensor[Float, (N, 6)]) -> Tensor[Float, (N, 6)]:
    return relay.relu(relay.linear(x, out_features=6))


@relay_model
def deep(x: Tensor[Float, (N, 6)]) -> Tensor[Float, (N, 6)]:
    for _ in relay.layers(3):
        x = block(x)
    return x


@relay_model
def shared(x: Tensor[Float, (N, 6)]) -> Tensor[Float, (N, 6)]:
    for _ in range(3):
        x = block(x)
    return x


@relay_model
def open_net(x: Tensor[Float, (N, K)], *, width: int) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.linear(x, out_features=width), out_features=2)


@relay_model
def normed(x: Tensor[Float, (N, 3, 5, 5)]) -> Tensor[Float, (N, 3, 5, 5)]:
    bn = relay.batch_norm(x)
    return bn  # noqa: RET504  parameters are named after it


@relay_model
def dropped(x: Tensor[Float, (N, 100)]) -> Tensor[Float, (N, 100)]:
    return relay.dropout(x, p=0.5)


def batch(n: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and labels that are the same every time."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator)
    return x, torch.randint(0, 3, (n,), generator=generator)


def torch_perceptron() -> nn.Module:
    """Return the same network as torch modules."""
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def test_parameters_are_named_after_their_call_sites() -> None:
    model = relay.create_model(perceptron, seed=0)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes == {
        "linear_1.weight": (8, 4),
        "linear_1.bias": (8,),
        "out.weight": (3, 8),
        "out.bias": (3,),
    }


def test_the_seed_decides_the_first_values() -> None:
    first, again = (relay.create_model(perceptron, seed=3) for _ in range(2))
    other = relay.create_model(perceptron, seed=4)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    assert not torch.equal(first.state_dict()["out.weight"], other.state_dict()["out.weight"])
    assert torch.count_nonzero(first.state_dict()["out.bias"]) == 0


def test_a_static_parameter_shapes_the_model() -> None:
    model = relay.create_model(perceptron, seed=0, hidden=16)
    assert dict(model.named_parameters())["linear_1.weight"].shape == (16, 4)
    assert model(batch()[0]).shape == (5, 3)


def test_state_dicts_interchange_with_the_torch_module() -> None:
    model, reference = relay.create_model(perceptron, seed=0), torch_perceptron()
    rename = {"0": "linear_1", "2": "out"}
    model.load_state_dict(reference.state_dict(), rename=rename)
    x, _ = batch()
    assert torch.allclose(model(x), reference(x), atol=1e-6)
    back = {
        k.replace("linear_1", "0").replace("out", "2"): v for k, v in model.state_dict().items()
    }
    reference.load_state_dict(back)


def test_gradients_of_a_model_are_torchs() -> None:
    model, reference = relay.create_model(perceptron, seed=0), torch_perceptron()
    model.load_state_dict(reference.state_dict(), rename={"0": "linear_1", "2": "out"})
    x, y = batch()
    value, grads = relay.value_and_grad(model, loss, (x, y))
    expected = functional.cross_entropy(reference(x), y)
    expected.backward()
    assert torch.allclose(value, expected.detach(), atol=1e-6)
    for name, parameter in zip(grads, reference.parameters(), strict=True):
        assert parameter.grad is not None
        assert torch.allclose(grads[name], parameter.grad, atol=1e-6), name
    assert torch.allclose(relay.grad(model, loss, (x, y))["out.bias"], grads["out.bias"])


def test_a_call_joins_torch_autograd() -> None:
    model, reference = relay.create_model(perceptron, seed=0), torch_perceptron()
    model.load_state_dict(reference.state_dict(), rename={"0": "linear_1", "2": "out"})
    x, _ = batch()
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    model(ours).sum().backward()
    reference(theirs).sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-6)
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-6)
    with torch.no_grad():
        assert not model(x).requires_grad


@pytest.mark.parametrize("inside", [False, True])
def test_a_training_loop_gives_torchs_numbers(inside: bool) -> None:
    model, reference = relay.create_model(perceptron, seed=0), torch_perceptron()
    model.load_state_dict(reference.state_dict(), rename={"0": "linear_1", "2": "out"})
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.5)
    x, y = batch()
    expected = torch.tensor(0.0)
    for _ in range(10):
        optimizer.zero_grad()
        expected = functional.cross_entropy(reference(x), y)
        expected.backward()
        optimizer.step()
    if inside:
        value = train(model, x, y, 10)
    else:
        value = torch.tensor(0.0)
        for _ in range(10):
            value, grads = relay.value_and_grad(model, loss, (x, y))
            relay.update_model_params(model, grads, lr=0.5)
    assert torch.allclose(value, expected.detach(), atol=1e-5)
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: relay.optim.sgd(lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9)),
        (lambda: relay.optim.adam(lr=0.1), lambda p: torch.optim.Adam(p, 0.1)),
        (lambda: relay.optim.adamw(lr=0.1), lambda p: torch.optim.AdamW(p, 0.1)),
    ],
)
def test_optimisers_take_torchs_steps(
    ours: Callable[[], Any], theirs: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]
) -> None:
    mine = relay.create_model(perceptron, seed=0)
    other = copy.deepcopy(mine)
    first, second = ours(), theirs(other.parameters())
    x, y = batch()
    for _ in range(5):
        _, grads = relay.value_and_grad(mine, loss, (x, y))
        relay.update_model_params(mine, grads, optimizer=first)
        _, grads = relay.value_and_grad(other, loss, (x, y))
        relay.update_model_params(other, grads, optimizer=second)
    for a, b in zip(mine.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_layers_have_parameters_each_and_a_loop_shares_its_own() -> None:
    assert len(list(relay.create_model(deep).parameters())) == 6
    model = relay.create_model(shared)
    assert len(list(model.parameters())) == 2
    x = torch.randn(4, 6)
    weight, bias = model.parameters()
    expected = x
    for _ in range(3):
        expected = torch.relu(functional.linear(expected, weight, bias))
    assert torch.allclose(model(x), expected, atol=1e-6)


def test_open_sizes_are_given_or_named() -> None:
    model = relay.create_model(open_net, dims={K: 7}, width=3)
    assert model(torch.randn(2, 7)).shape == (2, 2)
    with pytest.raises(RunError):
        model(torch.randn(2, 7), width=4)
    with pytest.raises(CheckError) as caught:
        relay.create_model(open_net, width=3)
    assert caught.value.codes == ("RL402",)


def test_training_mode_updates_running_statistics_and_eval_mode_uses_them() -> None:
    model, reference = relay.create_model(normed), nn.BatchNorm2d(3)
    assert {f"bn.{k}" for k in reference.state_dict() if k != "num_batches_tracked"} == set(
        model.state_dict()
    )
    for _ in range(3):
        x = torch.randn(8, 3, 5, 5) * 2 + 1
        assert torch.allclose(model(x), reference(x), atol=1e-5)
    mean = model.state_dict()["bn.running_mean"]
    assert torch.allclose(mean, reference.running_mean, atol=1e-5)
    model.eval()
    reference.eval()
    x = torch.randn(8, 3, 5, 5)
    assert torch.allclose(model(x), reference(x), atol=1e-5)
    assert torch.equal(mean, model.state_dict()["bn.running_mean"])


def test_dropout_draws_anew_in_training_and_does_nothing_in_eval_mode() -> None:
    model = relay.create_model(dropped)
    x = torch.ones(10, 100)
    first, second = model(x), model(x)
    assert not torch.equal(first, second)
    assert 0.35 < (first == 0).float().mean() < 0.65
    assert torch.allclose(first[first != 0], torch.tensor(2.0))
    assert torch.equal(model.eval()(x), x)
    assert not model.state_dict()


def test_copies_are_independent_and_share_the_definition() -> None:
    model = relay.create_model(perceptron)
    other = copy.deepcopy(model)
    x, y = batch()
    before = model(x)
    _, grads = relay.value_and_grad(other, loss, (x, y))
    relay.update_model_params(other, grads, lr=1.0)
    assert torch.equal(model(x), before)
    assert not torch.equal(other(x), before)


def test_an_exported_model_is_frozen_and_pickles_by_value() -> None:
    model = relay.create_model(perceptron)
    x, y = batch()
    predict = relay.export_model(model)
    before = predict(x)
    _, grads = relay.value_and_grad(model, loss, (x, y))
    relay.update_model_params(model, grads, lr=1.0)
    assert torch.equal(predict(x), before)
    assert torch.equal(pickle.loads(pickle.dumps(predict))(x), before)
    assert torch.allclose(before, predict(x=x))


def test_gradients_are_a_mapping_with_arithmetic() -> None:
    model = relay.create_model(perceptron)
    _, grads = relay.value_and_grad(model, loss, batch())
    assert list(grads) == list(model.state_dict())
    assert torch.allclose((grads + grads).norm(), 2 * grads.norm())
    assert torch.allclose((grads * 0.5 - grads / 2).norm(), torch.tensor(0.0))
    with pytest.raises(RunError, match=r"did you mean `out\.weight`"):
        _ = grads["out.wieght"]


def test_a_bound_function_runs_with_its_model() -> None:
    model = relay.create_model(perceptron)
    x, y = batch()
    value, _ = relay.value_and_grad(model, loss, (x, y))
    assert torch.allclose(model.bind(loss)(x, y), value)
    with pytest.raises(RunError) as caught:
        loss(x, y)
    assert caught.value.codes == ("RL401",)


def test_pure_parameters_leave_the_model_alone() -> None:
    model = relay.create_model(perceptron)
    x, y = batch()
    pure = relay.with_params(loss)
    params = model.params
    value, grads = relay.value_and_grad(model, loss, (x, y))
    assert torch.allclose(pure(params, x, y), value)
    moved = relay.sgd(params, grads, 0.5)
    assert torch.allclose(relay.value_and_grad(model, loss, (x, y))[0], value)
    relay.update_model_params(model, grads, lr=0.5)
    assert torch.allclose(pure(moved, x, y), model.bind(loss)(x, y))


def test_an_interrupted_loop_leaves_the_last_whole_update() -> None:
    @relay
    def broken(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        value = 0.0
        for i in range(3):
            assert i < 1, "stop here"
            value, grads = relay.value_and_grad(model, loss, (x, y))
            relay.update_model_params(model, grads, lr=0.5)
        return value

    model = relay.create_model(perceptron)
    other = copy.deepcopy(model)
    x, y = batch()
    with pytest.raises(RunError, match="stop here"):
        broken(model, x, y)
    _, grads = relay.value_and_grad(other, loss, (x, y))
    relay.update_model_params(other, grads, lr=0.5)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b)


@relay_model
def twin(x: Tensor[Float, (N, 3, 5, 5)], y: Tensor[Float, (N, 3, 5, 5)]) -> Float:
    return ((normed_pair(x) - normed_pair(y)) ** 2).mean()


@relay_model
def normed_pair(x: Tensor[Float, (N, 3, 5, 5)]) -> Tensor[Float, (N, 3, 5, 5)]:
    return relay.batch_norm(x) ** 3


@relay
def twin_loss(x: Tensor[Float, (N, 3, 5, 5)], y: Tensor[Float, (N, 3, 5, 5)]) -> Float:
    return twin(x, y)


def test_state_that_a_loss_updates_does_not_stop_its_gradient() -> None:
    model = relay.create_model(twin)
    x, y = torch.randn(4, 3, 5, 5), torch.randn(4, 3, 5, 5)
    _, grads = relay.value_and_grad(model, twin_loss, (x, y))
    assert grads.norm() > 0


@pytest.mark.parametrize("optimizer", [None, "momentum", "adam"])
def test_a_gradient_flows_through_updates_inside(optimizer: str | None) -> None:
    makers = {"momentum": relay.optim.sgd(0.1, momentum=0.9), "adam": relay.optim.adam(0.1)}
    rule = None if optimizer is None else makers[optimizer]

    @relay
    def trained(scale: Float, x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        model = relay.create_model(perceptron)
        for _ in range(3):
            grads = relay.grad(model, loss, (x * scale, y))
            relay.update_model_params(model, grads, lr=0.5, optimizer=rule)
        return model.bind(loss)(x, y)

    x, y = batch()
    slope = relay.grad(trained, wrt="scale")(0.7, x, y)
    step = 1e-2
    ends = [float(trained(0.7 + d, x, y)) for d in (step, -step)]
    assert float(slope) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-2)


def test_models_made_alike_share_what_is_compiled() -> None:
    import pyrelay

    x, y = batch()
    relay.value_and_grad(relay.create_model(perceptron, seed=1), loss, (x, y))
    second = relay.create_model(perceptron, seed=2)
    with pyrelay.no_compile():
        relay.value_and_grad(second, loss, (x, y))
    small = relay.create_model(open_net, width=2, dims={K: 3})
    large = relay.create_model(open_net, width=2, dims={K: 5})
    assert small(torch.ones(1, 3)).shape == large(torch.ones(1, 5)).shape == (1, 2)
    with pytest.raises(RunError):
        large(torch.ones(1, 3))
