import torch

from pyrelay import dispatch, relay


@dispatch.register(relay.tanh, ("cuda", "half"))
def fast_tanh(x):
    return torch.tanh(x)


try:
    dispatch.register("tanh", ("half", "cuda"), torch.tanh)
finally:
    dispatch.unregister(relay.tanh, ("cuda", "half"))
