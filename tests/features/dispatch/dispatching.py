"""Programs whose operators get implementations, and a fallback that notes what it sees."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay import Dim, Float, Int, Tensor, dispatch, relay

N, M = Dim("N"), Dim("M")
Counting = dispatch.mode("Counting")


@relay
def wave(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return relay.tanh(x) * 2.0 + 1.0


@relay
def mixed(x: Tensor[Float, (N,)], i: Tensor[Int, (N,)]) -> Tensor[Float, (N,)]:
    return relay.abs(x) + relay.abs(i).float()


@relay
def area(x: Tensor[Float, (N, M)]) -> Float:
    return relay.sum(relay.tanh(x @ x.T))


def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


class Seen:
    """A boxed fallback that notes the names of the operators it is called for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, call: dispatch.OperatorCall) -> Any:
        self.names.append(call.name)
        return call.redispatch()


def everywhere(f: Any, *args: Any) -> Any:
    """Return the value of a function, which must be the same in both executors."""
    value = f(*args)
    torch.testing.assert_close(f.interpret(*args), value)
    return value


X = torch.linspace(-1, 1, 12).reshape(4, 3)
