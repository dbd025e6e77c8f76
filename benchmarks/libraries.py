"""The operators that peers share, by one name each: of torch, and of JAX where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch.nn import functional


def _torch_scan(step: Callable[[Any, Any], Any], state: Any, inputs: torch.Tensor) -> Any:
    for x in inputs:
        state = step(state, x)
    return state


TORCH: Final = SimpleNamespace(
    amax=torch.amax,
    argmax=torch.argmax,
    avg_pool2d=functional.avg_pool2d,
    batch_norm=lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
    concatenate=torch.cat,
    conv1d=functional.conv1d,
    conv2d=functional.conv2d,
    cross_entropy=functional.cross_entropy,
    embedding=lambda weight, rows: functional.embedding(rows, weight),
    exp=torch.exp,
    gelu=functional.gelu,
    layer_norm=lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b),
    linear=functional.linear,
    log=torch.log,
    logsumexp=lambda x: torch.logsumexp(x, -1),
    max_pool2d=functional.max_pool2d,
    maximum=torch.maximum,
    mean=lambda x, axis: torch.mean(x, axis, keepdim=True),
    relu=torch.relu,
    scan=_torch_scan,
    sigmoid=torch.sigmoid,
    softmax=lambda x: torch.softmax(x, -1),
    sqrt=torch.sqrt,
    sum=torch.sum,
    swapaxes=torch.swapaxes,
    tanh=torch.tanh,
    zeros_like=torch.zeros_like,
)


def jax_library() -> Any:
    """Return the operators of JAX. Raises ImportError."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)

    def scan(step: Callable[[Any, Any], Any], state: Any, inputs: Any) -> Any:
        return lax.scan(lambda s, x: (step(s, x), None), state, inputs)[0]

    def cross_entropy(scores: Any, labels: Any) -> Any:
        logs = jax.nn.log_softmax(scores)
        return -jnp.take_along_axis(logs, labels[:, None], 1).mean()

    def conv(x: Any, w: Any, b: Any = None, stride: int = 1, padding: int = 0, **kw: Any) -> Any:
        space = x.ndim - 2
        groups = kw.get("groups", 1)
        pads = [(padding, padding)] * space
        made = lax.conv_general_dilated(x, w, (stride,) * space, pads, feature_group_count=groups)
        return made if b is None else made + b.reshape(-1, *[1] * space)

    def pooled(x: Any, size: int, start: Any, op: Any) -> Any:
        window = (1, 1, size, size)
        return lax.reduce_window(x, start, op, window, window, "VALID")

    def batch_norm(x: Any, w: Any, b: Any) -> Any:
        moved = x - x.mean((0, 2, 3), keepdims=True)
        scaled = moved * lax.rsqrt((moved * moved).mean((0, 2, 3), keepdims=True) + 1e-5)
        return scaled * w[:, None, None] + b[:, None, None]

    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        moved = x - x.mean(-1, keepdims=True)
        return moved * lax.rsqrt((moved * moved).mean(-1, keepdims=True) + 1e-5) * w + b

    def linear(x: Any, w: Any, b: Any = None) -> Any:
        made = x @ w.T
        return made if b is None else made + b

    return SimpleNamespace(
        amax=lambda x, dim: jnp.max(x, dim),
        argmax=jnp.argmax,
        avg_pool2d=lambda x, n: pooled(x, n, 0.0, lax.add) / (n * n),
        batch_norm=batch_norm,
        concatenate=lambda parts, axis=0: jnp.concatenate(parts, axis),
        conv1d=conv,
        conv2d=conv,
        cross_entropy=cross_entropy,
        embedding=lambda weight, rows: weight[rows],
        exp=jnp.exp,
        gelu=lambda x: jax.nn.gelu(x, approximate=False),
        layer_norm=layer_norm,
        linear=linear,
        log=jnp.log,
        logsumexp=lambda x: jax.nn.logsumexp(x, -1),
        max_pool2d=lambda x, n: pooled(x, n, -jnp.inf, lax.max),
        maximum=jnp.maximum,
        mean=lambda x, axis: jnp.mean(x, axis, keepdims=True),
        relu=jax.nn.relu,
        scan=scan,
        sigmoid=jax.nn.sigmoid,
        softmax=jax.nn.softmax,
        sqrt=jnp.sqrt,
        sum=jnp.sum,
        swapaxes=jnp.swapaxes,
        tanh=jnp.tanh,
        zeros_like=jnp.zeros_like,
    )


# One step of each optimiser as a function: of the library, a parameter, its gradient and its state.


def _sgd(_: Any, w: Any, g: Any, state: Any) -> tuple[Any, Any]:
    return w - RATE * g, state


def _momentum(_: Any, w: Any, g: Any, state: Any) -> tuple[Any, Any]:
    velocity = 0.9 * state[0] + g
    return w - RATE * velocity, (velocity, *state[1:])


def _adam(lib: Any, w: Any, g: Any, state: Any) -> tuple[Any, Any]:
    first, second, count = state
    count = count + 1
    first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
    scale = lib.sqrt(second / (1 - 0.999**count)) + 1e-8
    return w - RATE * first / (1 - 0.9**count) / scale, (first, second, count)


RATE: Final = 0.01
UPDATES: Final = {"sgd": _sgd, "momentum": _momentum, "adam": _adam}
TORCH_OPTIMIZERS: Final[dict[str, Callable[[Sequence[torch.Tensor]], torch.optim.Optimizer]]] = {
    "sgd": lambda w: torch.optim.SGD(w, lr=RATE),
    "momentum": lambda w: torch.optim.SGD(w, lr=RATE, momentum=0.9),
    "adam": lambda w: torch.optim.Adam(w, lr=RATE),
}
