"""Lists as Python writes them: `list[...]`, `Sequence[...]`, their methods, and Python's functions.
Records of parameters beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch

from pyrelay import Any, Dim, Float, Int, Params, Tensor, relay, relay_model

N, M = Dim("N"), Dim("M")


@dataclass(frozen=True)
class Entry:
    score: Float
    place: int


@relay
def stack_machine(codes: list[int], x: Float) -> Float:
    stack = [x]
    for code in codes:
        if code == 0:
            stack.append(x)
        elif code == 1:
            right, left = stack.pop(), stack.pop()
            stack.append(left + right)
        else:
            stack[-1] = stack[-1] * 2.0
    return stack[-1]


@relay
def best(entries: list[Entry], count: int) -> list[Entry]:
    ordered = sorted(entries, key=lambda e: -e.score)
    first = max(entries, key=lambda e: e.score)
    ordered.insert(0, first)
    return ordered[:count]


@relay
def lengths(rows: list[Tensor[Int, (Any,)]]) -> list[int]:
    return [len(row) for row in rows if any(v > 0 for v in row)]


@relay
def mean(xs: Sequence[Float]) -> Float:
    return sum(xs) / max(len(xs), 1)


@relay
def pairs(xs: list[tuple[Float, Int]]) -> tuple[list[Float], list[Int]]:
    values, counts = [], []
    for value, count in xs:
        values.append(value)
        counts.append(count)
    values[0], values[1] = values[1], values[0]
    return values, counts


@relay
def first_of(xs: list[Float] | None) -> Float:
    if xs is None or not xs:
        return 0.0
    return xs[0]


@relay
def transposed(xss: list[list[Float]]) -> list[list[Float]]:
    return [[xs[i] for xs in xss] for i in range(len(xss[0]))]


@relay
def ramp(k: Annotated[int, M], x: Float) -> Tensor[Float, (M,)]:
    return relay.arange(k) * x


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)], y: Tensor[Float, (N, 1)]) -> Float:
    return relay.mse_loss(net(x), y)


@relay
def adapted(params: Params[net], x: Tensor[Float, (N, 3)], y: Tensor[Float, (N, 1)]) -> Params[net]:
    pure = relay.with_params(loss)
    for _ in range(2):
        params = relay.sgd(params, relay.grad(pure)(params, x, y), 0.1)
    return params


print(float(stack_machine([0, 1, 2], 3.0)))
print([e.place for e in best([Entry(1.0, 1), Entry(2.0, 2)], 2)])
print(list(lengths([torch.tensor([1, 2]), torch.tensor([0, 0])])), float(mean([1.0, 2.0])))
print(pairs([(1.0, 1), (2.0, 2)]), float(first_of(None)), float(first_of([4.0])))
print(transposed([[1.0, 2.0], [3.0, 4.0]]), ramp(3, 2.0).shape)
model = relay.create_model(net, seed=0)
x, y = torch.ones(2, 3), torch.ones(2, 1)
step = adapted(model.params, x, y)
print(float((step - model.params).norm()) > 0.0)
