"""Gradients of each example of a batch of LeNet, against `vmap(grad)` of torch.func.

Values are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "vmap.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", str(ARGS.threads))  # before torch is loaded

import bench  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from pyrelay import Dim, Float, Int, Params, Tensor, relay, relay_model  # noqa: E402

N, M = Dim("N"), Dim("M")


@relay_model
def lenet(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    """Return the scores of ten classes."""
    h = relay.max_pool2d(relay.relu(relay.conv2d(x, out_channels=6, kernel_size=5, padding=2)), 2)
    h = relay.max_pool2d(relay.relu(relay.conv2d(h, out_channels=16, kernel_size=5)), 2)
    h = relay.relu(relay.linear(relay.flatten(h, start_dim=1), out_features=120))
    return relay.linear(relay.relu(relay.linear(h, out_features=84)), out_features=10)


@relay
def loss(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]) -> Float:
    """Return the cross entropy."""
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def of_each(params: Params[lenet], x: Tensor[Float, (M, 1, 1, 28, 28)], y: Tensor[Int, (M, 1)]):
    """Return the gradient of each example."""
    gradient = relay.grad(relay.with_params(loss))
    return relay.vmap(gradient, in_axes=(None, 0, 0))(params, x, y)


def torch_loss(params: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy by torch."""
    w = list(params.values())
    h = functional.max_pool2d(functional.relu(functional.conv2d(x, w[0], w[1], padding=2)), 2)
    h = functional.max_pool2d(functional.relu(functional.conv2d(h, w[2], w[3])), 2)
    h = functional.relu(functional.linear(h.flatten(1), w[4], w[5]))
    h = functional.relu(functional.linear(h, w[6], w[7]))
    return functional.cross_entropy(functional.linear(h, w[8], w[9]), y)


def main() -> None:
    """Compare the gradients, time them, and print one table."""
    torch.manual_seed(0)
    torch.set_num_threads(ARGS.threads)
    x, y = torch.randn(ARGS.batch, 1, 1, 28, 28), torch.randint(0, 10, (ARGS.batch, 1))
    model: Any = relay.create_model(lenet, seed=0)
    params = model.params
    plain = {n: p.detach() for n, p in model.named_parameters()}
    by_torch = torch.func.vmap(torch.func.grad(torch_loss), in_dims=(None, 0, 0))
    ways = {
        "torch.func": lambda: tuple(by_torch(plain, x, y).values()),
        "pyrelay": lambda: tuple(of_each(params, x, y)),
    }
    found: list[tuple[torch.Tensor, ...]] = []
    first: dict[str, float] = {}
    for name, work in ways.items():
        began = time.perf_counter()
        found.append(work())
        first[name] = time.perf_counter() - began
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)
    report = bench.Report("LeNet, gradients of each example", "torch.func", ("pyrelay", "torch"))
    candidates = {name: bench.Candidate(work) for name, work in ways.items()}
    effort = bench.Effort(rounds=ARGS.rounds)
    report.add(f"batch {ARGS.batch}", bench.compare(candidates, effort, first))
    report.print()
    report.save(ARGS.out)


if __name__ == "__main__":
    main()
