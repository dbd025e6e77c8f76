"""A training step of a large embedding, by the number of its rows: what it costs follows the batch.

python benchmarks/embedding.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

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


def milliseconds(run: Callable[[], Any], count: int) -> float:
    """Return the time of a run, after two that prepare it."""
    run()
    run()
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count * 1e3


def main() -> None:
    """Print the times of a step with plain descent and with Adam, and of a dense gradient."""
    print(
        f"{'rows':>10} {'descent':>10} {'adam':>10} {'dense':>10}   ms, batch {BATCH}, 32 columns"
    )
    for rows in (1_000, 100_000, 1_000_000):
        model = relay.create_model(net, seed=0, rows=rows)
        ids, adam = torch.randint(0, rows, (BATCH,)), relay.optim.adam(lr=0.01)

        def gradient(model: Any = model, ids: torch.Tensor = ids) -> Any:
            return relay.grad(model, loss, (ids,))

        def descent(model: Any = model) -> None:
            relay.update_model_params(model, gradient(model), lr=0.01)

        def lazily(model: Any = model, adam: Any = adam) -> None:
            relay.update_model_params(model, gradient(model), optimizer=adam)

        def dense(model: Any = model) -> Any:
            return gradient(model).tree

        times = milliseconds(descent, 20), milliseconds(lazily, 20), milliseconds(dense, 3)
        print(f"{rows:>10,} " + " ".join(f"{t:>10.2f}" for t in times))


if __name__ == "__main__":
    main()
