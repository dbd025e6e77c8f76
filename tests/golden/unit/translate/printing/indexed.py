from pyrelay import Dim, Float, Int, Tensor, relay
M = Dim('M')
N = Dim('N')


@relay
def indexed(x: Tensor[Float, (N, 4, M)], i: Int):
    chosen = x[relay.sum(x, dim=(1, 2)) > 0.0]
    return (chosen, relay.nonzero(x), x[1:, None, ..., 0], x[i, ::2], x[:, -1, :M // 2])
