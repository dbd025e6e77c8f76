"""Hessian-vector product of the loss of an MLP (784-512-512-10, tanh, batch 64) against torch.

Prints the median time of one product for: torch's double backward, `torch.func`'s jvp of grad, and
`relay.hvp`. Run `python benchmarks/hvp.py [--threads 2]`.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import bench
import torch
import torch.nn.functional as F  # noqa: N812

from pyrelay import Float, Int, Tensor, relay

X = Tensor[Float, (64, 784)]
Y = Tensor[Int, (64,)]
SHAPES = ((512, 784), (512,), (512, 512), (512,), (10, 512), (10,))
NAMES = ("w1", "b1", "w2", "b2", "w3", "b3")


@relay
def loss(
    w1: Tensor[Float, (512, 784)],
    b1: Tensor[Float, (512,)],
    w2: Tensor[Float, (512, 512)],
    b2: Tensor[Float, (512,)],
    w3: Tensor[Float, (10, 512)],
    b3: Tensor[Float, (10,)],
    x: X,
    y: Y,
) -> Float:
    """Return the cross-entropy of the network."""
    h = relay.tanh(relay.linear(x, w1, b1))
    h = relay.tanh(relay.linear(h, w2, b2))
    return relay.softmax_cross_entropy(relay.linear(h, w3, b3), y)


def in_torch(params: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the same in torch."""
    w1, b1, w2, b2, w3, b3 = params
    h = torch.tanh(F.linear(x, w1, b1))
    h = torch.tanh(F.linear(h, w2, b2))
    return F.cross_entropy(F.linear(h, w3, b3), y)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    params = tuple(torch.randn(s) / s[-1] ** 0.5 for s in SHAPES)
    vector = tuple(torch.randn(s) / s[-1] ** 0.5 for s in SHAPES)
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    leaves = [p.clone().requires_grad_() for p in params]

    def double_backward() -> Any:
        grads = torch.autograd.grad(in_torch(leaves, x, y), leaves, create_graph=True)
        return torch.autograd.grad(grads, leaves, grad_outputs=vector)

    def forward_over_reverse() -> Any:
        gradient = torch.func.grad(lambda p: in_torch(p, x, y))
        return torch.func.jvp(gradient, (params,), (vector,))[1]

    product = relay.hvp(loss, wrt=NAMES)

    def ours() -> Any:
        return product((*params, x, y), vector)

    for mine, theirs in zip(ours(), double_backward(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    base = bench.median(double_backward)
    rows = {
        "torch double backward": base,
        "torch.func jvp(grad)": bench.median(forward_over_reverse),
        "relay.hvp": bench.median(ours),
    }
    for name, found in rows.items():
        print(f"{name:24} {found:8.3f} ms  {base / found:5.2f} x")


if __name__ == "__main__":
    main()
