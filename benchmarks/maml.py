"""Model-agnostic meta-learning (Finn et al., 2017) of a sine wave, against PyTorch in eager mode.

The inner step is one of descent on parameters that are values; the outer step differentiates
through it and updates the model. Both are called from a script; in `program` a call is ten outer
steps in compiled code. Values and gradients are compared before anything is timed.
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
    parser.add_argument("--shots", type=int, default=10, help="points of a task")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "maml.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", str(ARGS.threads))  # before torch is loaded

import bench  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model  # noqa: E402

N = Dim("N")
INNER, OUTER, STEPS = 0.01, 1e-3, 10
Weights = list[torch.Tensor]


@relay_model
def net(x: Tensor[Float, (N, 1)]) -> Tensor[Float, (N, 1)]:
    """Return the wave at some points."""
    first = relay.relu(relay.linear(x, out_features=40))
    second = relay.relu(relay.linear(first, out_features=40))
    return relay.linear(second, out_features=1)


@relay
def error(x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> Float:
    """Return the mean squared error."""
    return ((net(x) - y) ** 2).mean()


@relay
def adapted(model: Model[net], x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> Float:
    """Return the error after an inner step."""
    pure = relay.with_params(error)
    params = relay.sgd(model.params, relay.grad(pure)(model.params, x, y), INNER)
    return pure(params, x, y)


@relay
def train(
    model: Model[net], x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)], *, steps: int
) -> Float:
    """Take outer steps in compiled code."""
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, adapted, (model, x, y))
        relay.update_model_params(model, grads, lr=OUTER)
    return value


def torch_error(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean squared error by torch."""
    hidden = functional.relu(functional.linear(x, weights[0], weights[1]))
    hidden = functional.relu(functional.linear(hidden, weights[2], weights[3]))
    return ((functional.linear(hidden, weights[4], weights[5]) - y) ** 2).mean()


def torch_inner(
    weights: Weights, x: torch.Tensor, y: torch.Tensor, *, create_graph: bool
) -> Weights:
    """Return the weights after an inner step by torch."""
    grads = torch.autograd.grad(torch_error(weights, x, y), weights, create_graph=create_graph)
    with torch.set_grad_enabled(create_graph):
        return [w - INNER * g for w, g in zip(weights, grads, strict=True)]


def torch_outer(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Take an outer step by torch; return the error after the inner one."""
    value = torch_error(torch_inner(weights, x, y, create_graph=True), x, y)
    with torch.no_grad():
        for weight, grad in zip(weights, torch.autograd.grad(value, weights), strict=True):
            weight.add_(grad, alpha=-OUTER)
    return value.detach()


def main() -> None:
    """Compare the steps, time them, and print one table."""
    torch.manual_seed(0)
    torch.set_num_threads(ARGS.threads)
    x = torch.rand(ARGS.shots, 1) * 10.0 - 5.0
    y = torch.sin(x)
    model: Any = relay.create_model(net, seed=0)
    start = [p.detach().clone() for p in model.parameters()]
    weights = [p.clone().requires_grad_() for p in start]
    gradient = relay.grad(relay.with_params(error))

    def reset() -> None:
        with torch.no_grad():
            for there, ours, theirs in zip(start, model.parameters(), weights, strict=True):
                ours.copy_(there)
                theirs.copy_(there)

    def inner() -> Any:
        params = model.params
        return relay.sgd(params, gradient(params, x, y), INNER)

    def outer() -> torch.Tensor:
        value, grads = relay.value_and_grad(model, adapted, (model, x, y))
        relay.update_model_params(model, grads, lr=OUTER)
        return value

    def outers() -> torch.Tensor:
        value = torch.zeros(())
        for _ in range(STEPS):
            value = torch_outer(weights, x, y)
        return value

    cases = {
        "inner step": {
            "torch eager": lambda: torch_inner(weights, x, y, create_graph=False),
            "pyrelay": lambda: list(inner().values()),
        },
        "outer step": {"torch eager": lambda: torch_outer(weights, x, y), "pyrelay": outer},
        f"program of {STEPS}": {
            "torch eager": outers,
            "pyrelay": lambda: train(model, x, y, steps=STEPS),
        },
    }
    report = bench.Report("MAML, a sine wave", "torch eager", ("pyrelay", "torch"))
    effort = bench.Effort(rounds=ARGS.rounds)
    for case, ways in cases.items():
        found: list[Any] = []
        first: dict[str, float] = {}
        for name, work in ways.items():
            reset()
            began = time.perf_counter()
            found.append(work())
            first[name] = time.perf_counter() - began
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
        candidates = {name: bench.Candidate(work, reset) for name, work in ways.items()}
        report.add(case, bench.compare(candidates, effort, first))
    report.print()
    report.save(ARGS.out)


if __name__ == "__main__":
    main()
