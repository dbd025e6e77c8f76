from __future__ import annotations

from pyrelay import Float, Tensor, relay, relay_model


@relay_model
def deeper(x: Tensor[Float, (3,)]):
    both = relay.cat((deeper(x), deeper(2 * x)))
    return relay.tanh(relay.linear(both, out_features=3))
