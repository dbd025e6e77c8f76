"""Print every operator that a program runs, with the shapes: one boxed fallback serves them all."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay import Dim, Float, Tensor, dispatch, relay

N, K = Dim("N"), Dim("K")

Tracing = dispatch.mode("Tracing")


@dispatch.fallback(Tracing)
def trace(call: dispatch.OperatorCall) -> Any:
    """Run the operator, and print what it took and gave."""
    result = call.redispatch()
    print(f"{call.name:20}", *map(shape, call.operands), "->", shape(result))
    return result


def shape(value: Any) -> Any:
    """Return the shape of a tensor, other values as they are."""
    return list(value.shape) if isinstance(value, torch.Tensor) else value


@relay
def energy(w: Tensor[Float, (K,)], x: Tensor[Float, (N, K)]) -> Float:
    """Return the mean square of a layer of units."""
    return relay.mean(relay.tanh(x @ w) ** 2)


if __name__ == "__main__":
    w, x = torch.ones(3), torch.linspace(-1, 1, 12).reshape(4, 3)
    with dispatch.include(Tracing):
        print("the function")
        energy(w, x)
        print("its gradient")
        relay.grad(energy, wrt="w")(w, x)
