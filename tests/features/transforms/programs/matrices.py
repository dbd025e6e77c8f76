"""Programs of a matrix: products, decompositions, layers."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.nn import functional

from pyrelay import Tensor, float64, relay
from tests.features.transforms.programs.case import Case, in_torch

MATRIX = Tensor[float64, (3, 3)]


@relay
def positive(x: MATRIX) -> MATRIX:
    return x @ x.T + relay.eye(3, dtype=float64)


@relay
def traces(x: MATRIX) -> float64:
    return relay.sum(relay.diagonal(x @ x @ x))


@relay
def bilinear(x: MATRIX) -> float64:
    return relay.sum(relay.tanh(x @ x.T))


@relay
def transposed(x: MATRIX) -> float64:
    return relay.sum(x * relay.transpose(x, 0, 1) * x)


@relay
def determinants(x: MATRIX) -> float64:
    return relay.linalg.det(positive(x))


@relay
def inverses(x: MATRIX) -> float64:
    return relay.sum(relay.linalg.inv(positive(x)))


@relay
def solutions(x: MATRIX) -> float64:
    return relay.sum(relay.linalg.solve(positive(x), x[0]))


@relay
def cholesky(x: MATRIX) -> float64:
    return relay.sum(relay.linalg.cholesky(positive(x)))


@relay
def log_determinants(x: MATRIX) -> float64:
    return relay.log(relay.linalg.det(positive(x)))


@relay
def row_softmax(x: MATRIX) -> float64:
    return relay.sum(relay.softmax(x, dim=1) @ x)


@relay
def attention(x: MATRIX) -> float64:
    return relay.sum(relay.softmax(x @ x.T, dim=-1) @ x)


@relay
def layer_norm(x: MATRIX) -> float64:
    return relay.sum(relay.layer_norm(x, (3,)) * relay.sin(x))


@relay
def linear_layers(x: MATRIX) -> float64:
    return relay.sum(relay.linear(relay.tanh(relay.linear(x, x)), x))


@relay
def batched_products(x: MATRIX) -> float64:
    return relay.sum((x.reshape(1, 3, 3) @ x.reshape(1, 3, 3)) ** 2)


@relay
def row_sums(x: MATRIX) -> float64:
    return relay.sum(x.sum(dim=1) ** 2 * x.mean(dim=0))


@relay
def column_maxima(x: MATRIX) -> float64:
    return relay.sum(relay.amax(x, dim=(0,)) ** 2)


@relay
def triangles(x: MATRIX) -> float64:
    return relay.sum(relay.tril(x) @ relay.triu(x))


@relay
def cross_entropy(x: MATRIX) -> float64:
    return relay.softmax_cross_entropy(x, relay.tensor([0, 2, 1]))


@relay
def squared_error(x: MATRIX) -> float64:
    return relay.mse_loss(x, relay.sin(x.T))


@relay
def convolution(x: MATRIX) -> float64:
    return relay.sum(relay.tanh(relay.conv2d(x.reshape(1, 1, 3, 3), x[:2, :2].reshape(1, 1, 2, 2))))


@relay
def pooling(x: MATRIX) -> float64:
    return relay.sum(relay.avg_pool2d((x * x).reshape(1, 1, 3, 3), kernel_size=2) ** 2)


@relay
def rows_of_a_matrix(x: MATRIX) -> float64:
    return relay.sum(x[1] * x[:, 2] * x[0])


@relay
def embedding_rows(x: MATRIX) -> float64:
    return relay.sum(relay.embedding(relay.tensor([0, 2, 0]), x) ** 3)


def definite(m: Any, x: Any) -> Any:
    return x @ x.T + m.eye(3, dtype=m.float64)


def by_its_corner(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(functional.conv2d(x[None, None], x[None, None, :2, :2])).sum()


CASES: Final = [
    Case(traces, (3, 3), lambda m, x: m.sum(m.diagonal(x @ x @ x))),
    Case(bilinear, (3, 3), lambda m, x: m.sum(m.tanh(x @ x.T))),
    Case(transposed, (3, 3), lambda m, x: m.sum(x * x.T * x)),
    Case(determinants, (3, 3), lambda m, x: m.linalg.det(definite(m, x))),
    Case(inverses, (3, 3), lambda m, x: m.sum(m.linalg.inv(definite(m, x)))),
    Case(solutions, (3, 3), lambda m, x: m.sum(m.linalg.solve(definite(m, x), x[0]))),
    Case(cholesky, (3, 3), lambda m, x: m.sum(m.linalg.cholesky(definite(m, x)))),
    in_torch(log_determinants, (3, 3), lambda x: torch.logdet(x @ x.T + torch.eye(3).double())),
    in_torch(row_softmax, (3, 3), lambda x: (torch.softmax(x, 1) @ x).sum()),
    in_torch(attention, (3, 3), lambda x: (torch.softmax(x @ x.T, -1) @ x).sum()),
    in_torch(layer_norm, (3, 3), lambda x: (functional.layer_norm(x, (3,)) * torch.sin(x)).sum()),
    in_torch(linear_layers, (3, 3), lambda x: (torch.tanh(x @ x.T) @ x.T).sum()),
    in_torch(batched_products, (3, 3), lambda x: ((x @ x) ** 2).sum()),
    Case(row_sums, (3, 3), lambda m, x: m.sum(x.sum(1) ** 2 * x.mean(0))),
    Case(column_maxima, (3, 3), lambda m, x: m.sum(m.amax(x, 0) ** 2)),
    Case(triangles, (3, 3), lambda m, x: m.sum(m.tril(x) @ m.triu(x))),
    in_torch(cross_entropy, (3, 3), lambda x: functional.cross_entropy(x, torch.tensor([0, 2, 1]))),
    in_torch(squared_error, (3, 3), lambda x: ((x - torch.sin(x.T)) ** 2).mean()),
    in_torch(convolution, (3, 3), by_its_corner),
    in_torch(pooling, (3, 3), lambda x: (functional.avg_pool2d((x * x)[None], 2) ** 2).sum()),
    Case(rows_of_a_matrix, (3, 3), lambda m, x: m.sum(x[1] * x[:, 2] * x[0])),
    in_torch(embedding_rows, (3, 3), lambda x: (x[torch.tensor([0, 2, 0])] ** 3).sum()),
]
