import torch

from pyrelay import dispatch, relay

with (
    dispatch.register(relay.tanh, "cpu", torch.tanh),
    dispatch.register(relay.tanh, ("cuda", "half"), torch.tanh),
):
    dispatch.unregister(relay.tanh, "cuda")
