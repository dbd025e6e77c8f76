"""Training steps and inference of networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from benchmarks.cases.case import Calling, Case, Training, Work
from benchmarks.libraries import RATE
from pyrelay import Dim, Float, Int, Model, Tensor, float64, relay, relay_model

N = Dim("N")
Labels = Tensor[Int, (N,)]


def step_of(
    net: Any, loss: Any, images: Any, labels: Any, optimizer: Any, result: Any = Float
) -> Any:
    """Return the program of a step of training; `result` is the type of the loss."""

    @relay
    def step(model: Model[net], x: images, y: labels) -> result:
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


def peer_lenet_inference(lib: Any, x: Any, *w: Any) -> Any:
    """Return the scores of digits."""
    return peer_lenet_scores(lib, w, x)


@relay_model
def deep(x: Tensor[Float, (N, 256)]) -> Tensor[Float, (N, 10)]:
    """Return the scores of classes by eight layers."""
    x = relay.relu(relay.linear(x, out_features=256))
    x = relay.relu(relay.linear(x, out_features=256))
    x = relay.relu(relay.linear(x, out_features=256))
    x = relay.relu(relay.linear(x, out_features=256))
    x = relay.relu(relay.linear(x, out_features=256))
    x = relay.relu(relay.linear(x, out_features=256))
    x = relay.relu(relay.linear(x, out_features=256))
    return relay.linear(x, out_features=10)


@relay
def deep_loss(x: Tensor[Float, (N, 256)], y: Labels) -> Float:
    """Return the loss of the model."""
    return relay.softmax_cross_entropy(deep(x), y)


def peer_deep(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    for layer in range(7):
        x = lib.relu(lib.linear(x, w[2 * layer], w[2 * layer + 1]))
    return lib.cross_entropy(lib.linear(x, w[14], w[15]), y)


Doubles = Tensor[float64, (N, 128)]


@relay_model
def double(x: Doubles) -> Tensor[float64, (N, 10)]:
    """Return the scores of classes in float64."""
    first = relay.tanh(relay.linear(x, out_features=256))
    return relay.linear(first, out_features=10)


@relay
def double_loss(x: Doubles, y: Labels) -> float64:
    """Return the loss of the model."""
    return relay.softmax_cross_entropy(double(x), y)


def peer_double(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    return lib.cross_entropy(lib.linear(lib.tanh(lib.linear(x, w[0], w[1])), w[2], w[3]), y)


def inference(net: Any, peer: Any) -> tuple[Any, Any]:
    """Return what runs a model on its first argument, and the peer, which gets the weights as
    well: neither records anything, since the peer's weights require no grad."""
    kept: list[Any] = []

    def run(x: Any, *_: Any) -> Any:
        if not kept:
            kept.append(relay.create_model(net, seed=0).eval())
        with torch.no_grad():
            return kept[0](x)

    return run, peer


def weights(net: Any) -> tuple[Any, ...]:
    """Return the parameters of a model that `inference` runs."""
    return tuple(p.detach() for p in relay.create_model(net, seed=0).parameters())


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


def _lenet_inference(size: int, limit: float) -> Case:
    work = Work(args=lambda: (torch.rand(size, 1, 28, 28), *weights(lenet)), limit=limit)
    run, peer = inference(lenet, peer_lenet_inference)
    return Calling(f"LeNet, batch {size}", run, peer, work)


def _deep(size: int) -> Case:
    types = Tensor[Float, (N, 256)], Labels
    name = f"MLP of 8 layers step, batch {size}"
    return _training(name, deep, deep_loss, peer_deep, types, Work(args=_batch(size, 256)))


def _double(size: int) -> Case:
    def args() -> tuple[Any, ...]:
        return torch.rand(size, 128, dtype=torch.float64), torch.randint(0, 10, (size,))

    step = step_of(double, double_loss, Doubles, Labels, relay.optim.sgd(lr=RATE), float64)
    name = f"MLP step, float64, batch {size}"
    return Training(
        name, lambda: relay.create_model(double, seed=0), step, peer_double, Work(args=args)
    )


CASES: Final[tuple[Case, ...]] = (
    _lenet(1, 7.5),
    _lenet(32, 4.1),
    _lenet(256, 3.0),
    _mlp(64, 2.06),
    _mlp(1),
    _mlp(1024),
    _mlp(64, optimizer="momentum"),
    _mlp(64, optimizer="adam"),
    _lenet_inference(1, 6.7),
    _lenet_inference(32, 4.4),
    _deep(64),
    _double(64),
)
