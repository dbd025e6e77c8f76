"""Compiled C against PyTorch in eager mode: the same work in one process, values compared first.

`python benchmarks/compiled_c.py [--threads 2] [--cases CASE ...]`
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="*", default=[], help="those whose names contain one")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "compiled_c.json")
    return parser.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before torch is loaded

import bench  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from pyrelay import Dim, Float, Int, Model, Tensor, options, relay, relay_model  # noqa: E402

N, M, K = Dim("N"), Dim("M"), Dim("K")
Rows = Tensor[Float, (N, M)]
Row = Tensor[Float, (M,)]

Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
"""A function of pyrelay, the same in torch, and arguments."""


@relay
def gelu(x: Rows, w: Row, b: Row):
    """Return a scaled and shifted gelu."""
    return relay.gelu(x * w + b)


@relay
def chain(x: Rows):
    """Return the result of twenty operators, five of which are tanh."""
    for _ in relay.layers(5):
        x = relay.tanh(x * 1.1 + 0.1) * 0.9
    return x


def torch_chain(x: torch.Tensor) -> torch.Tensor:
    """Return the same."""
    for _ in range(5):
        x = torch.tanh(x * 1.1 + 0.1) * 0.9
    return x


@relay
def tiny(x: Rows):
    """Return the result of fifty operators."""
    for _ in relay.layers(10):
        x = relay.tanh(x * 1.1 + 0.1) * 0.9 - x
    return x


def torch_tiny(x: torch.Tensor) -> torch.Tensor:
    """Return the same."""
    for _ in range(10):
        x = torch.tanh(x * 1.1 + 0.1) * 0.9 - x
    return x


@relay
def layer_norm(x: Rows, w: Row, b: Row):
    """Return the normalised rows."""
    return relay.layer_norm(x, (x.shape[1],), w, b)


@relay
def softmax(x: Rows):
    """Return the softmax of rows."""
    return relay.softmax(x, dim=-1)


@relay
def linear_gelu(x: Tensor[Float, (N, K)], w: Tensor[Float, (M, K)], b: Row):
    """Return a layer and its activation."""
    return relay.gelu(relay.linear(x, w, b))


@relay_model
def mlp(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    """Return the scores of classes."""
    first = relay.tanh(relay.linear(x, out_features=512))
    second = relay.tanh(relay.linear(first, out_features=512))
    return relay.linear(second, out_features=10)


@relay
def mlp_loss(x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    """Return the loss of the model."""
    return relay.softmax_cross_entropy(mlp(x), y)


@relay
def mlp_step(model: Model[mlp], x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    """Return the loss before one step of descent."""
    value, grads = relay.value_and_grad(model, mlp_loss, (x, y))
    relay.update_model_params(model, grads, lr=0.01)
    return value


def mlp_case() -> Case:
    """Return a training step of an MLP, from the same weights on both sides."""
    model = relay.create_model(mlp, seed=0)
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(functional.linear(x, weights[0], weights[1]))
        h = torch.tanh(functional.linear(h, weights[2], weights[3]))
        loss = functional.cross_entropy(functional.linear(h, weights[4], weights[5]), y)
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, grad in zip(weights, grads, strict=True):
                weight.sub_(grad, alpha=0.01)
        return loss.detach()

    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    return lambda x, y: mlp_step(model, x, y), step, (x, y)


def cases() -> dict[str, Callable[[], Case]]:
    """Return the cases by name."""
    big = torch.randn(4096, 1024)
    w, b = torch.randn(1024), torch.randn(1024)

    def torch_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x * w + b)

    def torch_linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.gelu(functional.linear(x, w, b))

    square = torch.randn(512, 512), torch.randn(512, 512), torch.randn(512)
    return {
        "chain of 20, 4096x1024": lambda: (chain, torch_chain, (big,)),
        "gelu(x*w+b), 4096x1024": lambda: (gelu, torch_gelu, (big, w, b)),
        "50 tiny operators, 8x8": lambda: (tiny, torch_tiny, (torch.randn(8, 8),)),
        "layer norm, 4096x1024": lambda: (
            layer_norm,
            lambda x, w, b: functional.layer_norm(x, (1024,), w, b),
            (big, w, b),
        ),
        "softmax, 4096x1024": lambda: (softmax, lambda x: torch.softmax(x, -1), (big,)),
        "linear + gelu, 512^3": lambda: (linear_gelu, torch_linear, square),
        "MLP training step, batch 64": mlp_case,
    }


def main() -> None:
    """Measure every case and write the results."""
    torch.set_num_threads(ARGS.threads)
    effort = bench.Effort(rounds=ARGS.rounds)
    report = bench.Report("Compiled C", "torch", ("torch",), threads=ARGS.threads)
    for name, make in cases().items():
        if ARGS.cases and not any(word in name for word in ARGS.cases):
            continue
        function, in_torch, args = make()
        with options(lowering="c"):
            start = time.perf_counter()
            found = function(*args)
            first = time.perf_counter() - start
            expected = in_torch(*args)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            candidates = {
                "torch": bench.Candidate(lambda f=in_torch, a=args: f(*a)),
                "c": bench.Candidate(lambda f=function, a=args: f(*a)),
            }
            report.add(name, bench.compare(candidates, effort, {"torch": 0.0, "c": first}))
    report.print()
    report.save(ARGS.out)


if __name__ == "__main__":
    main()
