"""Sizes are given that the model does not have, that are no numbers, and not written out."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N, K, D = Dim("N"), Dim("K"), Dim("D")
SIZES = {K: 784}


@relay_model
def net(x: Tensor[Float, (N, K)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10)


@relay
def misnamed(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    model = relay.create_model(net, dims={D: 784})
    return model(x)


@relay
def unfitting(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    model = relay.create_model(net, dims={K: "784"})
    return model(x)


@relay
def keyed_by_a_number(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    model = relay.create_model(net, dims={1: 784})
    return model(x)


@relay
def elsewhere(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    model = relay.create_model(net, dims=SIZES)
    return model(x)


@relay
def known_late(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    model = relay.create_model(net, dims={K: x.shape[1]})
    return model(x)


def main() -> None:
    """Show all mistakes."""
    from pyrelay import CheckError

    found = []
    for function in (misnamed, unfitting, keyed_by_a_number, elsewhere, known_late):
        try:
            function.check()
        except CheckError as error:
            found += error.diagnostics
    raise CheckError(*found)
