"""numpy's functions likewise."""

import numpy as np

from pyrelay import Float, relay


@relay
def squash(x: Float) -> Float:
    return np.tanh(x)
