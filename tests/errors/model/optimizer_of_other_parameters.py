"""An optimiser of torch over parameters that are not the model's."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

K, N = Dim("K"), Dim("N")


@relay_model
def net(x: Tensor[Float, (N, K)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=1)


@relay
def loss(x: Tensor[Float, (N, K)]) -> Float:
    return net(x).sum()


def main() -> None:
    """Run it."""
    model = relay.create_model(net, dims={K: 3})
    grads = relay.grad(model, loss, (torch.ones(2, 3),))
    opt = torch.optim.SGD(torch.nn.Linear(3, 1).parameters(), lr=0.1)
    relay.update_model_params(model, grads, optimizer=opt)
