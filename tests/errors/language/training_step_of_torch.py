"""A training step as scripts write it for torch."""

import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def step(model: Model[net], x: Tensor[Float, (N, 4)], y: Tensor[Float, (N, 1)]) -> Float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def main() -> None:
    step.check()
