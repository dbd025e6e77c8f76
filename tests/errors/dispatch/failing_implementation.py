import torch

from pyrelay import Dim, Float, Tensor, dispatch, relay

N = Dim("N")


@relay
def score(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.tanh(x) + 1.0


def fast_tanh(x):
    if not x.is_cuda:
        raise NotImplementedError("fast_tanh runs on a GPU")
    return x


def main():
    with dispatch.register(relay.tanh, (), fast_tanh):
        score(torch.ones(5))
