from pyrelay import NHWC, Dim, Float, Tensor, relay

N = Dim("N")


@relay
def main(x: Tensor[Float, (N, 3), NHWC]) -> Tensor[Float, (N, 3)]:
    return x
