"""Hessian of the loss of a small MLP (16-24-1, tanh, batch 32) in all of its 433 parameters.

Prints the median time of one Hessian by `torch.func.hessian`, by JAX where it is installed, and by
`relay.hessian`, whose entries are compared first. Run `python benchmarks/hessian.py [--threads 2]`.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, Final

import bench
import torch
import torch.nn.functional as F  # noqa: N812

from pyrelay import Float, Tensor, relay

SHAPES: Final = ((24, 16), (24,), (1, 24), (1,))
NAMES: Final = ("w1", "b1", "w2", "b2")


@relay
def loss(
    w1: Tensor[Float, (24, 16)],
    b1: Tensor[Float, (24,)],
    w2: Tensor[Float, (1, 24)],
    b2: Tensor[Float, (1,)],
    x: Tensor[Float, (32, 16)],
    y: Tensor[Float, (32, 1)],
) -> Float:
    """Return the mean squared error of the network."""
    return ((relay.linear(relay.tanh(relay.linear(x, w1, b1)), w2, b2) - y) ** 2).mean()


def in_torch(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> torch.Tensor:
    """Return the same in torch."""
    return ((F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2) - y) ** 2).mean()


def by_jax(given: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    """Return a compiled Hessian by JAX."""
    import jax

    def plain(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
        hidden = jax.numpy.tanh(x @ w1.T + b1)
        return ((hidden @ w2.T + b2 - y) ** 2).mean()

    args = [jax.numpy.array(g.numpy()) for g in given]
    hessian = jax.jit(jax.hessian(plain, argnums=(0, 1, 2, 3)))
    return lambda: jax.block_until_ready(hessian(*args))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    params = tuple(torch.randn(s) / s[-1] ** 0.5 for s in SHAPES)
    given = (*params, torch.randn(32, 16), torch.randn(32, 1))
    ours, theirs = relay.hessian(loss, wrt=NAMES), torch.func.hessian(in_torch, (0, 1, 2, 3))
    for mine, row in zip(ours(*given), theirs(*given), strict=True):
        for a, b in zip(mine, row, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    rows = {"torch.func.hessian": lambda: theirs(*given), "relay.hessian": lambda: ours(*given)}
    if importlib.util.find_spec("jax") is not None:
        rows["jax.hessian, compiled"] = by_jax(given)
    times = {name: bench.median(run) for name, run in rows.items()}
    for name, found in times.items():
        print(f"{name:24} {found:8.3f} ms  {times['torch.func.hessian'] / found:5.2f} x")


if __name__ == "__main__":
    main()
