"""A training step of a large embedding, by the number of its rows: what it costs follows the batch.

python benchmarks/embedding.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, relay, relay_model

N = Dim("N")
BATCH = 256


@relay_model
def net(ids: Tensor[Int, (N,)], *, rows: int) -> Tensor[Float, (N, 1)]:
    """Return a number for each row that is looked up."""
    found = relay.embedding(ids, num_embeddings=rows, embedding_dim=32)
    return relay.linear(relay.tanh(found), out_features=1)


@relay
def loss(ids: Tensor[Int, (N,)]) -> Float:
    """Return the squares of the numbers, added."""
    return (net(ids) ** 2).sum()


@relay
def step(model: Model[net], optimizer: Optimizer, ids: Tensor[Int, (N,)]) -> Float:
    """Take one step in a program, and return the loss before."""
    value, grads = relay.value_and_grad(model, loss, (ids,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


def milliseconds(run: Callable[[], Any], count: int) -> float:
    """Return the time of a run, after two that prepare it."""
    run()
    run()
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count * 1e3


def main() -> None:
    """Print the times of a step with plain descent and with Adam, in scripts and in programs, and
    of a dense gradient."""
    names = ("descent", "adam", "program", "dense")
    head = " ".join(f"{n:>10}" for n in ("rows", *names))
    print(f"{head}   ms, batch {BATCH}, 32 columns; `program` is a step with Adam in a program")
    for rows in (1_000, 100_000, 1_000_000):
        model = relay.create_model(net, seed=0, rows=rows)
        ids, adam = torch.randint(0, rows, (BATCH,)), relay.optim.adam(lr=0.01)

        def gradient(model: Any = model, ids: torch.Tensor = ids) -> Any:
            return relay.grad(model, loss, (ids,))

        def descent(model: Any = model) -> None:
            relay.update_model_params(model, gradient(model), lr=0.01)

        def lazily(model: Any = model, adam: Any = adam) -> None:
            relay.update_model_params(model, gradient(model), optimizer=adam)

        def inside(model: Any = model, adam: Any = adam, ids: torch.Tensor = ids) -> Any:
            return step(model, adam, ids)

        def dense(model: Any = model) -> Any:
            return gradient(model).tree

        runs = ((descent, 20), (lazily, 20), (inside, 20), (dense, 3))
        times = [milliseconds(run, count) for run, count in runs]
        print(f"{rows:>10,} " + " ".join(f"{t:>10.2f}" for t in times))


if __name__ == "__main__":
    main()
