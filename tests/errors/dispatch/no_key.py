import torch

from pyrelay import dispatch, relay

dispatch.register(relay.tanh, ("cuda", "flaot"), torch.tanh)
