import torch

from pyrelay import Dim, Float, Tensor, dispatch, relay

N = Dim("N")
Exact = dispatch.mode("Exact")


@relay
def score(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.exp(x)


def exactly(call):
    return call.redispatch(*(x.double() for x in call.operands))


def main():
    with dispatch.fallback(Exact, exactly), dispatch.include(Exact):
        score(torch.ones(5))
