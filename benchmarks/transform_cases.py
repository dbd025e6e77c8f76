"""Cases of `benchmarks.transforms`: one piece of work done by torch, `torch.func`, JAX and pyrelay.

A case makes its ways of doing the work, by name; all give the same tensors. `torch` is the
baseline: the fastest of what torch and `torch.func` offer for it in eager mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import torch
from torch.utils.checkpoint import checkpoint

from benchmarks.cases.blocks import HEADS, WIDTH, Words, peer_block
from benchmarks.libraries import TORCH, jax_library
from pyrelay import Dim, Float, Int, Model, Params, Tensor, relay, relay_model
from pyrelay.models.transformer import transformer_block

N, M = Dim("N"), Dim("M")
Way: TypeAlias = Callable[[], Any]


@final
@dataclass(frozen=True)
class Case:
    """`make` returns the ways without JAX, `in_jax` that with it; `reset` is called before blocks
    of calls. With `has_memory` the growth of the process is measured, too."""

    name: str
    make: Callable[[], Mapping[str, Way]]
    in_jax: Callable[[], Way] | None = None
    tolerance: float = 1e-4
    has_memory: bool = False


def _jitted(function: Callable[..., Any], *args: Any) -> Way:
    """Return calls of a function of JAX with tensors, compiled."""
    import jax

    given = jax.tree.map(lambda x: jax.numpy.array(x.numpy()), args)
    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*given))


# ---- the Hessian of an MLP, times a vector

SHAPES: Final = ((512, 784), (512,), (512, 512), (512,), (10, 512), (10,))
NAMES: Final = ("w1", "b1", "w2", "b2", "w3", "b3")


@relay
def mlp_loss(
    w1: Tensor[Float, (512, 784)],
    b1: Tensor[Float, (512,)],
    w2: Tensor[Float, (512, 512)],
    b2: Tensor[Float, (512,)],
    w3: Tensor[Float, (10, 512)],
    b3: Tensor[Float, (10,)],
    x: Tensor[Float, (64, 784)],
    y: Tensor[Int, (64,)],
) -> Float:
    """Return the cross-entropy of the network."""
    h = relay.tanh(relay.linear(x, w1, b1))
    h = relay.tanh(relay.linear(h, w2, b2))
    return relay.softmax_cross_entropy(relay.linear(h, w3, b3), y)


def peer_mlp(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    h = lib.tanh(lib.linear(x, w[0], w[1]))
    h = lib.tanh(lib.linear(h, w[2], w[3]))
    return lib.cross_entropy(lib.linear(h, w[4], w[5]), y)


def _mlp() -> tuple[Any, ...]:
    torch.manual_seed(0)
    params, vector = (tuple(torch.randn(s) / s[-1] ** 0.5 for s in SHAPES) for _ in range(2))
    return params, vector, torch.randn(64, 784), torch.randint(0, 10, (64,))


def _product() -> Mapping[str, Way]:
    params, vector, x, y = _mlp()
    leaves = [p.clone().requires_grad_() for p in params]
    gradient = torch.func.grad(lambda p: peer_mlp(TORCH, p, x, y))
    product = relay.hvp(mlp_loss, wrt=NAMES)

    def double_backward() -> Any:
        grads = torch.autograd.grad(peer_mlp(TORCH, leaves, x, y), leaves, create_graph=True)
        return torch.autograd.grad(grads, leaves, grad_outputs=vector)

    return {
        "torch": double_backward,
        "torch.func": lambda: torch.func.jvp(gradient, (params,), (vector,))[1],
        "pyrelay": lambda: product((*params, x, y), vector),
    }


def _product_in_jax() -> Way:
    import jax

    lib = jax_library()

    def product(params: Any, vector: Any, x: Any, y: Any) -> Any:
        gradient = jax.grad(lambda p: peer_mlp(lib, p, x, y))
        return jax.jvp(gradient, (params,), (vector,))[1]

    return _jitted(product, *_mlp())


# ---- the whole Hessian of a small MLP


@relay
def small_loss(
    w1: Tensor[Float, (24, 16)],
    b1: Tensor[Float, (24,)],
    w2: Tensor[Float, (1, 24)],
    b2: Tensor[Float, (1,)],
    x: Tensor[Float, (32, 16)],
    y: Tensor[Float, (32, 1)],
) -> Float:
    """Return the mean squared error of the network."""
    return ((relay.linear(relay.tanh(relay.linear(x, w1, b1)), w2, b2) - y) ** 2).mean()


def peer_small(lib: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    return ((lib.linear(lib.tanh(lib.linear(x, w1, b1)), w2, b2) - y) ** 2).mean()


def _small() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    shapes = ((24, 16), (24,), (1, 24), (1,))
    params = tuple(torch.randn(s) / s[-1] ** 0.5 for s in shapes)
    return (*params, torch.randn(32, 16), torch.randn(32, 1))


def _hessian() -> Mapping[str, Way]:
    given = _small()
    ours = relay.hessian(small_loss, wrt=("w1", "b1", "w2", "b2"))
    theirs = torch.func.hessian(lambda *args: peer_small(TORCH, *args), (0, 1, 2, 3))
    return {"torch": lambda: theirs(*given), "pyrelay": lambda: ours(*given)}


def _hessian_in_jax() -> Way:
    import jax

    lib = jax_library()
    hessian = jax.hessian(lambda *args: peer_small(lib, *args), argnums=(0, 1, 2, 3))
    return _jitted(hessian, *_small())


# ---- gradients of each example

EXAMPLES: Final = 64


@relay_model
def lenet(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    """Return the scores of ten classes."""
    h = relay.max_pool2d(relay.relu(relay.conv2d(x, out_channels=6, kernel_size=5, padding=2)), 2)
    h = relay.max_pool2d(relay.relu(relay.conv2d(h, out_channels=16, kernel_size=5)), 2)
    h = relay.relu(relay.linear(relay.flatten(h, start_dim=1), out_features=120))
    return relay.linear(relay.relu(relay.linear(h, out_features=84)), out_features=10)


@relay
def lenet_loss(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]) -> Float:
    """Return the cross entropy."""
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def of_each(params: Params[lenet], x: Tensor[Float, (M, 1, 1, 28, 28)], y: Tensor[Int, (M, 1)]):
    """Return the gradient of each example."""
    gradient = relay.grad(relay.with_params(lenet_loss))
    return relay.vmap(gradient, in_axes=(None, 0, 0))(params, x, y)


def peer_lenet(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same cross entropy."""
    h = lib.max_pool2d(lib.relu(lib.conv2d(x, w[0], w[1], padding=2)), 2)
    h = lib.max_pool2d(lib.relu(lib.conv2d(h, w[2], w[3])), 2)
    h = lib.relu(lib.linear(h.reshape(h.shape[0], -1), w[4], w[5]))
    h = lib.relu(lib.linear(h, w[6], w[7]))
    return lib.cross_entropy(lib.linear(h, w[8], w[9]), y)


def _examples() -> tuple[Any, ...]:
    torch.manual_seed(0)
    model: Any = relay.create_model(lenet, seed=0)
    images = torch.randn(EXAMPLES, 1, 1, 28, 28)
    return model, images, torch.randint(0, 10, (EXAMPLES, 1))


def _each() -> Mapping[str, Way]:
    model, x, y = _examples()
    plain, params = [p.detach() for p in model.parameters()], model.params
    gradient = torch.func.grad(lambda w, x, y: peer_lenet(TORCH, w, x, y))
    theirs = torch.func.vmap(gradient, in_dims=(None, 0, 0))
    return {
        "torch": lambda: tuple(theirs(plain, x, y)),
        "pyrelay": lambda: tuple(of_each(params, x, y)),
    }


def _each_in_jax() -> Way:
    import jax

    lib = jax_library()
    model, x, y = _examples()
    gradient = jax.grad(lambda w, x, y: peer_lenet(lib, w, x, y))
    plain = [p.detach() for p in model.parameters()]
    return _jitted(jax.vmap(gradient, in_axes=(None, 0, 0)), plain, x, y)


# ---- model-agnostic meta-learning (Finn et al., 2017) of a sine wave

INNER: Final = 0.01


@relay_model
def wave(x: Tensor[Float, (N, 1)]) -> Tensor[Float, (N, 1)]:
    """Return the wave at some points."""
    first = relay.relu(relay.linear(x, out_features=40))
    return relay.linear(relay.relu(relay.linear(first, out_features=40)), out_features=1)


@relay
def error(x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> Float:
    """Return the mean squared error."""
    return ((wave(x) - y) ** 2).mean()


@relay
def adapted(model: Model[wave], x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> Float:
    """Return the error after an inner step."""
    pure = relay.with_params(error)
    params = relay.sgd(model.params, relay.grad(pure)(model.params, x, y), INNER)
    return pure(params, x, y)


def peer_error(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same error."""
    h = lib.relu(lib.linear(lib.relu(lib.linear(x, w[0], w[1])), w[2], w[3]))
    return ((lib.linear(h, w[4], w[5]) - y) ** 2).mean()


def _tasks() -> tuple[Any, ...]:
    torch.manual_seed(0)
    x = torch.rand(10, 1) * 10.0 - 5.0
    model: Any = relay.create_model(wave, seed=0)
    return model, x, torch.sin(x)


def _meta() -> Mapping[str, Way]:
    model, x, y = _tasks()
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def outer() -> Any:
        inner = torch.autograd.grad(peer_error(TORCH, weights, x, y), weights, create_graph=True)
        moved = [w - INNER * g for w, g in zip(weights, inner, strict=True)]
        return torch.autograd.grad(peer_error(TORCH, moved, x, y), weights)

    def ours() -> Any:
        return tuple(relay.value_and_grad(model, adapted, (model, x, y))[1].values())

    return {"torch": outer, "pyrelay": ours}


def _meta_in_jax() -> Way:
    import jax

    lib = jax_library()
    model, x, y = _tasks()

    def after(w: Any, x: Any, y: Any) -> Any:
        inner = jax.grad(lambda w: peer_error(lib, w, x, y))(w)
        moved = jax.tree.map(lambda w, g: w - INNER * g, w, inner)
        return peer_error(lib, moved, x, y)

    return _jitted(jax.grad(after), [p.detach() for p in model.parameters()], x, y)


# ---- a transformer whose blocks are computed again

LAYERS: Final = 6


@relay_model
def plain_block(x: Words) -> Words:
    """Return the features after a block."""
    return transformer_block(x, heads=HEADS, hidden=4 * WIDTH)


@relay.checkpoint
@relay_model
def block(x: Words) -> Words:
    """Return the features after a block, of which nothing is saved."""
    return transformer_block(x, heads=HEADS, hidden=4 * WIDTH)


@relay_model
def plain_stack(x: Words) -> Words:
    """Return the features after all blocks."""
    for _ in relay.layers(LAYERS):
        x = plain_block(x)
    return x


@relay_model
def stack(x: Words) -> Words:
    """Return the features after all blocks."""
    for _ in relay.layers(LAYERS):
        x = block(x)
    return x


@relay
def plain_distance(x: Words, y: Words) -> Float:
    """Return how far the features are from others."""
    return relay.mean((plain_stack(x) - y) ** 2)


@relay
def distance(x: Words, y: Words) -> Float:
    """Return how far the features are from others."""
    return relay.mean((stack(x) - y) ** 2)


def peer_distance(lib: Any, apply: Callable[..., Any], w: Any, x: Any, y: Any) -> Any:
    """Return the same distance; `apply` calls a block."""
    size = len(w) // LAYERS
    for layer in range(LAYERS):
        x = apply(lambda x, *w: peer_block(lib, x, *w), x, *w[layer * size : (layer + 1) * size])
    return ((x - y) ** 2).mean()


def _words(model: Any) -> tuple[Any, ...]:
    torch.manual_seed(0)
    made: Any = relay.create_model(model, seed=0)
    return made, torch.randn(8, 128, WIDTH), torch.randn(8, 128, WIDTH)


def _again(*, saves: bool) -> Mapping[str, Way]:
    model, x, y = _words(plain_stack if saves else stack)
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    loss = plain_distance if saves else distance

    def apply(f: Any, x: Any, *w: Any) -> Any:
        return f(x, *w) if saves else checkpoint(f, x, *w, use_reentrant=False)

    return {
        "torch": lambda: torch.autograd.grad(peer_distance(TORCH, apply, weights, x, y), weights),
        "pyrelay": lambda: tuple(relay.grad(model, loss, (x, y)).values()),
    }


def _again_in_jax(*, saves: bool) -> Way:
    import jax

    lib = jax_library()
    model, x, y = _words(plain_stack if saves else stack)

    def apply(f: Any, x: Any, *w: Any) -> Any:
        return f(x, *w) if saves else jax.checkpoint(f)(x, *w)

    gradient = jax.grad(lambda w, x, y: peer_distance(lib, apply, w, x, y))
    return _jitted(gradient, [p.detach() for p in model.parameters()], x, y)


CASES: Final = (
    Case("Hessian-vector product, MLP 784-512-512-10", _product, _product_in_jax, 1e-3),
    Case("Hessian, MLP 16-24-1", _hessian, _hessian_in_jax, 1e-3),
    Case(f"gradients of {EXAMPLES} examples, LeNet", _each, _each_in_jax, 1e-3),
    Case("MAML, gradient through an inner step", _meta, _meta_in_jax),
    Case(
        f"transformer of {LAYERS} blocks, all saved",
        lambda: _again(saves=True),
        lambda: _again_in_jax(saves=True),
        1e-3,
        has_memory=True,
    ),
    Case(
        f"transformer of {LAYERS} blocks, checkpointed",
        lambda: _again(saves=False),
        lambda: _again_in_jax(saves=False),
        1e-3,
        has_memory=True,
    ),
)
"""The cases, in the order of the table."""
