from pyrelay import Float, Tensor, dispatch, relay


@relay
def norm(x: Tensor[Float, (3,)]) -> Float:
    return relay.sum(x * x)


dispatch.register(norm, "cuda", norm)
