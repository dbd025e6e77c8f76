"""Training steps and inference of networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from benchmarks.cases.case import Case, Training, Work
from benchmarks.libraries import RATE
from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model

N = Dim("N")
Labels = Tensor[Int, (N,)]


def step_of(net: Any, loss: Any, images: Any, labels: Any, optimizer: Any) -> Any:
    """Return the program of a step of training."""

    @relay
    def step(model: Model[net], x: images, y: labels) -> Float:
        value, grads = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, grads, optimizer=optimizer)
        return value

    return step


OPTIMIZERS: Final[dict[str, Callable[[], Any]]] = {
    "sgd": lambda: relay.optim.sgd(lr=RATE),
    "momentum": lambda: relay.optim.sgd(lr=RATE, momentum=0.9),
    "adam": lambda: relay.optim.adam(lr=RATE),
}

Images = Tensor[Float, (N, 1, 28, 28)]


@relay_model
def lenet(x: Images) -> Tensor[Float, (N, 10)]:
    """Return the scores of ten digits."""
    h = relay.max_pool2d(relay.tanh(relay.conv2d(x, out_channels=20, kernel_size=5)), 2)
    h = relay.max_pool2d(relay.tanh(relay.conv2d(h, out_channels=50, kernel_size=5)), 2)
    h = relay.tanh(relay.linear(relay.flatten(h, start_dim=1), out_features=500))
    return relay.linear(h, out_features=10)


@relay
def lenet_loss(x: Images, y: Labels) -> Float:
    """Return the mean cross entropy of a batch."""
    return relay.softmax_cross_entropy(lenet(x), y)


def peer_lenet_scores(lib: Any, w: Any, x: Any) -> Any:
    """Return the same scores."""
    h = lib.max_pool2d(lib.tanh(lib.conv2d(x, w[0], w[1])), 2)
    h = lib.max_pool2d(lib.tanh(lib.conv2d(h, w[2], w[3])), 2)
    h = lib.tanh(lib.linear(h.reshape(h.shape[0], -1), w[4], w[5]))
    return lib.linear(h, w[6], w[7])


def peer_lenet(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same loss."""
    return lib.cross_entropy(peer_lenet_scores(lib, w, x), y)


Vectors = Tensor[Float, (N, 784)]


@relay_model
def mlp(x: Vectors) -> Tensor[Float, (N, 10)]:
    """Return the scores of classes."""
    first = relay.tanh(relay.linear(x, out_features=512))
    second = relay.tanh(relay.linear(first, out_features=512))
    return relay.linear(second, out_features=10)


@relay
def mlp_loss(x: Vectors, y: Labels) -> Float:
    """Return the loss of the model."""
    return relay.softmax_cross_entropy(mlp(x), y)


def peer_mlp(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    h = lib.tanh(lib.linear(x, w[0], w[1]))
    h = lib.tanh(lib.linear(h, w[2], w[3]))
    return lib.cross_entropy(lib.linear(h, w[4], w[5]), y)


def _batch(size: int, *shape: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.rand(size, *shape), torch.randint(0, 10, (size,)))


def _training(
    name: str,
    net: Any,
    loss: Any,
    peer: Any,
    types: tuple[Any, Any],
    work: Work,
    optimizer: str = "sgd",
) -> Training:
    step = step_of(net, loss, *types, OPTIMIZERS[optimizer]())
    return Training(name, lambda: relay.create_model(net, seed=0), step, peer, work, optimizer)


def _lenet(size: int, limit: float) -> Case:
    work = Work(args=_batch(size, 1, 28, 28), limit=limit)
    name = f"LeNet step, batch {size}"
    return _training(name, lenet, lenet_loss, peer_lenet, (Images, Labels), work)


def _mlp(size: int, limit: float | None = None, optimizer: str = "sgd") -> Case:
    work = Work(args=_batch(size, 784), limit=limit)
    name = f"MLP step, batch {size}" + (f", {optimizer}" if optimizer != "sgd" else "")
    return _training(name, mlp, mlp_loss, peer_mlp, (Vectors, Labels), work, optimizer)


CASES: Final[tuple[Case, ...]] = (
    _lenet(1, 7.5),
    _lenet(32, 4.1),
    _lenet(256, 3.0),
    _mlp(64, 2.06),
    _mlp(1),
    _mlp(1024),
    _mlp(64, optimizer="momentum"),
    _mlp(64, optimizer="adam"),
)
