"""Training steps of a large embedding, by the rows of the table and the rows that a batch reads.

A step costs what the batch reads, whatever the size of the table. torch does so with `sparse=True`
(SGD and SparseAdam, with a dense optimiser for the layer behind the embedding). Ways take turns in
each round; a result is the median over the rounds, in milliseconds.

python benchmarks/embedding.py [--rounds 7] [--out benchmarks/results/embedding.json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, __version__, relay, relay_model

N = Dim("N")
WIDTH: Final = 32
ROWS: Final = (1_000, 100_000, 1_000_000)
BATCHES: Final = (16, 256, 4_096)
RESULTS: Final = Path(__file__).resolve().parent / "results" / "embedding.json"


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
def descended(model: Model[net], ids: Tensor[Int, (N,)]) -> Float:
    """Take one step of plain descent in a program, and return the loss before."""
    value, grads = relay.value_and_grad(model, loss, (ids,))
    relay.update_model_params(model, grads, lr=0.01)
    return value


@relay
def stepped(model: Model[net], optimizer: Optimizer, ids: Tensor[Int, (N,)]) -> Float:
    """Take one step of an optimiser in a program, and return the loss before."""
    value, grads = relay.value_and_grad(model, loss, (ids,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


class Net(nn.Module):
    """The same model in torch."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, WIDTH, sparse=True)
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return (self.last(torch.tanh(self.table(ids))) ** 2).sum()


def in_torch(rows: int, ids: torch.Tensor, *, adam: bool) -> Callable[[], Any]:
    """Return a step in torch with a sparse gradient of the table."""
    model = Net(rows)
    dense = [*model.last.parameters()]
    optimizers: list[Any] = [torch.optim.SGD(model.parameters(), 0.01)]
    if adam:
        table = torch.optim.SparseAdam(model.table.parameters(), 0.01)
        optimizers = [table, torch.optim.Adam(dense, 0.01)]

    def step() -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        model(ids).backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def ways(rows: int, count: int) -> Mapping[str, Callable[[], Any]]:
    """Return the steps that are compared, for a table of so many rows and a batch of `count`."""
    model = relay.create_model(net, seed=0, rows=rows)
    ids, adam = torch.randint(0, rows, (count,)), relay.optim.adam(lr=0.01)

    def script(**options: Any) -> None:
        relay.update_model_params(model, relay.grad(model, loss, (ids,)), **options)

    return {
        "descent": lambda: script(lr=0.01),
        "descent, program": lambda: descended(model, ids),
        "descent, torch": in_torch(rows, ids, adam=False),
        "adam": lambda: script(optimizer=adam),
        "adam, program": lambda: stepped(model, adam, ids),
        "adam, torch": in_torch(rows, ids, adam=True),
    }


def milliseconds(run: Callable[[], Any], count: int = 10) -> float:
    """Return the time of a run."""
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count * 1e3


def measured(rows: int, count: int, rounds: int) -> dict[str, float]:
    """Return the median times of all ways, which take turns."""
    steps = ways(rows, count)
    for step in steps.values():
        for _ in range(4):  # compile it
            step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            times[name].append(milliseconds(step))
    return {name: round(statistics.median(found), 4) for name, found in times.items()}


def main() -> None:
    """Measure, print a table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    cases: list[dict[str, Any]] = []
    for rows, count in [*((rows, 256) for rows in ROWS), *((ROWS[-1], n) for n in BATCHES)]:
        if any(case["rows"] == rows and case["batch"] == count for case in cases):
            continue
        times = measured(rows, count, options.rounds)
        if not cases:
            print(f"{'rows':>10}{'batch':>7}" + "".join(f"{name:>18}" for name in times))
        cases.append({"rows": rows, "batch": count, "milliseconds": times})
        print(f"{rows:>10,}{count:>7,}" + "".join(f"{t:>18.3f}" for t in times.values()))
    facts = {"pyrelay": __version__, "torch": torch.__version__, "threads": torch.get_num_threads()}
    options.out.write_text(json.dumps({**facts, "width": WIDTH, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
