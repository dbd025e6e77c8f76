"""One recursive model, many tree shapes: how often each compiler compiles, and what that costs.

The model is a binary TreeLSTM whose gradient is taken for trees of different shapes, each seen
once. pyrelay compiles the recursion; `torch.compile` compiles what one tree makes of it, so it
starts again for every shape and gives up after a few (`torch._dynamo.config.recompile_limit`);
from there on it runs eagerly. Losses are compared on every tree.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=200, help="trees, no two of one shape")
    parser.add_argument("--torch-shapes", type=int, default=10, help="of these for torch.compile")
    parser.add_argument("--leaves", type=int, default=12, help="of a tree")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "tree_shapes.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", str(ARGS.threads))  # before torch is loaded
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # nothing from earlier runs

import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from torch._inductor import compile as compile_graph  # noqa: E402

from benchmarks import bench  # noqa: E402
from pyrelay import Float, relay  # noqa: E402
from pyrelay.models.tree_lstm import Leaf, Node, Tree, binary_tree_lstm  # noqa: E402

WORDS, SIZE = 20, 64
Weights = dict[str, torch.Tensor]


@relay
def loss(tree: Tree) -> Float:
    """Return a number that depends on all weights."""
    hidden, memory = binary_tree_lstm(tree, words=WORDS, size=SIZE)
    return relay.sum(hidden * hidden) + relay.sum(memory * memory)


def trees(count: int, leaves: int) -> list[Tree]:
    """Return trees of as many leaves, no two of one shape."""
    chance = random.Random(0)
    found: dict[str, Tree] = {}
    while len(found) < count:
        tree, shape = _random_tree(chance, leaves)
        found.setdefault(shape, tree)
    return list(found.values())


def _random_tree(chance: random.Random, leaves: int) -> tuple[Tree, str]:
    if leaves == 1:
        return Leaf(chance.randrange(WORDS)), "."
    split = chance.randint(1, leaves - 1)
    left, left_shape = _random_tree(chance, split)
    right, right_shape = _random_tree(chance, leaves - split)
    return Node(left, right), f"({left_shape}{right_shape})"


def torch_states(w: Weights, tree: Tree) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the model gives, as torch's users write it."""
    match tree:
        case Leaf(word):
            leaf = torch.nn.functional.linear(w["x.weight"][word], w["leaf.weight"], w["leaf.bias"])
            memory = leaf[:SIZE]
            return torch.sigmoid(leaf[SIZE:]) * torch.tanh(memory), memory
        case Node(left, right):
            left_hidden, left_memory = torch_states(w, left)
            right_hidden, right_memory = torch_states(w, right)
            both = torch.cat((left_hidden, right_hidden))
            gates = torch.nn.functional.linear(both, w["gates.weight"], w["gates.bias"])
            entry, keep_left, keep_right, leave, candidate = gates.chunk(5)
            kept = torch.sigmoid(keep_left) * left_memory
            kept = kept + torch.sigmoid(keep_right) * right_memory
            memory = torch.sigmoid(entry) * torch.tanh(candidate) + kept
            return torch.sigmoid(leave) * torch.tanh(memory), memory


def torch_loss(w: Weights, tree: Tree) -> torch.Tensor:
    """Return the loss in torch."""
    hidden, memory = torch_states(w, tree)
    return (hidden * hidden).sum() + (memory * memory).sum()


Step = Callable[[Tree], torch.Tensor]


def weights(model: Any) -> Weights:
    """Return a copy of the model's weights, requiring gradients."""
    return {k: v.detach().clone().requires_grad_() for k, v in model.named_parameters()}


def backward(w: Weights, value: torch.Tensor) -> torch.Tensor:
    """Take the gradient, and forget it."""
    value.backward()
    for v in w.values():
        v.grad = None
    return value.detach()


def run(step: Step, trees: list[Tree]) -> tuple[list[float], list[float]]:
    """Return the losses of trees, and the seconds that each took."""
    losses: list[float] = []
    seconds: list[float] = []
    for tree in trees:
        start = time.perf_counter()
        losses.append(float(step(tree)))
        seconds.append(time.perf_counter() - start)
    return losses, seconds


def main() -> None:
    """Run every way once over its trees, and print one table."""
    torch.set_num_threads(ARGS.threads)
    shapes = trees(ARGS.shapes, ARGS.leaves)
    model: Any = relay.create_model(binary_tree_lstm, seed=0, words=WORDS, size=SIZE)
    w = weights(model)
    graphs = 0

    def counted(graph: Any, inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return compile_graph(graph, inputs)

    compiled = torch.compile(torch_loss, backend=counted, dynamic=True)
    ways: dict[str, tuple[Step, list[Tree], Callable[[], int]]] = {
        "torch eager": (lambda t: backward(w, torch_loss(w, t)), shapes, lambda: 0),
        "pyrelay": (
            lambda t: relay.value_and_grad(model, loss, (t,))[0],
            shapes,
            lambda: loss.cache_info().misses,
        ),
        "torch.compile": (
            lambda t: backward(w, compiled(w, t)),
            shapes[: ARGS.torch_shapes],
            lambda: graphs,
        ),
    }
    table = Table(title=f"TreeLSTM, value and gradient, trees of {ARGS.leaves} leaves")
    for heading in ("", "shapes", "compilations", "first tree", "all trees", "median after"):
        table.add_column(heading, justify="right")
    report: dict[str, Any] = {}
    expected: list[float] = []
    for name, (step, given, count) in ways.items():
        losses, seconds = run(step, given)
        expected = expected or losses
        torch.testing.assert_close(losses, expected[: len(losses)], rtol=1e-4, atol=1e-5)
        later = bench.statistics.median(seconds[len(seconds) // 2 :])
        report[name] = {
            "shapes": len(given),
            "compilations": count(),
            "first": seconds[0],
            "total": sum(seconds),
            "later": later,
        }
        row = (f"{seconds[0]:.2f} s", f"{sum(seconds):.2f} s", f"{later * 1e3:.2f} ms")
        table.add_row(name, str(len(given)), str(count()), *row)
    Console(width=110).print(table)
    facts = {**bench.machine(), "versions": bench.versions(("pyrelay", "torch"))}
    ARGS.out.write_text(json.dumps({**facts, "ways": report}, indent=1) + "\n")
    Console().print(f"wrote {ARGS.out}")


if __name__ == "__main__":
    main()
