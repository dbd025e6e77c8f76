"""Optimisers whose memory is saved, and training that goes on in another process."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pyrelay import Dim, Float, Model, Optimizer, RunError, Tensor, relay, relay_model

N, K = Dim("N"), Dim("K")


@relay_model
def net(x: Tensor[Float, (N, K)], *, width: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=width)), out_features=1)


@relay
def loss(x: Tensor[Float, (N, K)]) -> Float:
    return (net(x) ** 2).mean()


@relay
def step(model: Model[net], opt: Optimizer, x: Tensor[Float, (N, K)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=opt)
    return value


def _model(seed: int, width: int = 4) -> Model[net]:
    return relay.create_model(net, seed=seed, dims={K: 3}, width=width)


MAKERS: list[Callable[[], Optimizer]] = [
    lambda: relay.optim.sgd(lr=0.1),
    lambda: relay.optim.sgd(lr=0.1, momentum=0.9, nesterov=True),
    lambda: relay.optim.adamw(lr=0.05),
]


@pytest.mark.parametrize("make", MAKERS, ids=["sgd", "momentum", "adamw"])
def test_training_goes_on_from_a_file_as_if_it_had_not_stopped(
    make: Callable[[], Optimizer], tmp_path: Path
) -> None:
    x = torch.linspace(-1.0, 1.0, 15).reshape(5, 3)
    model, opt = _model(0), make()
    for _ in range(3):
        step(model, opt, x)
    opt.lr = 0.03
    file = tmp_path / "training.pt"
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(model)}, file)
    expected = [step(model, opt, x) for _ in range(3)]

    other, again = _model(1), make()
    saved = torch.load(file)
    other.load_state_dict(saved["model"])
    again.load_state_dict(other, saved["opt"])
    assert again.lr == 0.03
    assert torch.equal(
        torch.stack([step(other, again, x) for _ in range(3)]), torch.stack(expected)
    )
    held = {p for tree in saved["opt"]["moments"] for p in tree}
    assert held <= set(dict(model.named_parameters()))


def test_what_is_loaded_is_copied() -> None:
    x = torch.ones(2, 3)
    model, opt = _model(0), relay.optim.adam(lr=0.1)
    step(model, opt, x)
    saved = opt.state_dict(model)
    before = {n: t.clone() for n, t in saved["moments"][0].items()}
    other, again = _model(0), relay.optim.adam(lr=0.1)
    again.load_state_dict(other, saved)
    step(other, again, x)
    assert all(torch.equal(saved["moments"][0][n], t) for n, t in before.items())


def test_a_state_of_another_model_or_of_nothing_is_refused_and_changes_nothing() -> None:
    x = torch.ones(2, 3)
    model, opt = _model(0), relay.optim.adam(lr=0.1)
    step(model, opt, x)
    with pytest.raises(RunError, match=r"has the shape \(9, 3\), and is \(4, 3\) in the model"):
        opt.load_state_dict(model, relay.optim.adam(lr=0.2).state_dict(_model(0, width=9)))
    with pytest.raises(RunError, match="is missing, and is"):
        opt.load_state_dict(model, {"lr": 0.2, "step": 1, "moments": [{}, {}]})
    with pytest.raises(RunError, match="it has nothing, not lr, step, moments"):
        opt.load_state_dict(model, {})
    with pytest.raises(RunError, match="it has 1 moment, and this optimiser 2"):
        opt.load_state_dict(model, {"lr": 0.2, "step": 1, "moments": [{}]})
    assert (opt.lr, opt.state_dict(model)["step"]) == (0.1, 1)
