import math
import torch
from pyrelay import Bool, Dim, Float, Int, Tensor, relay
N = Dim('N')
constant = relay.const(torch.tensor([0.10000000149011612, -math.inf, math.nan, -0.0], dtype=torch.float32).reshape((2, 2)))


@relay
def straight(x: Tensor[Float, (N, 2)], k: Int, b: Bool) -> tuple[Tensor[Float, (N, 2)], Int]:
    y = x @ constant * 2.0 + 0.5
    n = relay.dim_size(x, dim=0)
    pair = (relay.reshape(y, shape=(2 * N,)), (k + 1, not b))
    return (-relay.reshape(pair[0], shape=(N, 2)), pair[1][0] // 2)
