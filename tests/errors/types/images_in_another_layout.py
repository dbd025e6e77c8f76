from pyrelay import NHWC, Dim, Float, Tensor, relay

N, H, W = Dim("N"), Dim("H"), Dim("W")


@relay
def brighter(x: Tensor[Float, (N, 3, H, W), NHWC]) -> Tensor[Float, (N, 3, H, W), NHWC]:
    return x * 2.0


@relay
def rows(x: Tensor[Float, (N, 3, H, W)]) -> Tensor[Float, (N, 3 * H * W)]:
    laid = relay.to_layout(x, "NHWC")
    return relay.flatten(laid, start_dim=1)


@relay
def shifted(x: Tensor[Float, (N, 3, H, W)], colour: Tensor[Float, (3, 1, 1)]) -> Float:
    laid = relay.to_layout(x, "NHWC")
    return relay.numel(laid + colour) * 1.0


@relay
def channels(x: Tensor[Float, (N, 3, H, W)], scale: Tensor[Float, (W,)]) -> Float:
    laid = relay.to_layout(x, "NHWC")
    return relay.numel(laid * scale) * 1.0


@relay
def called(x: Tensor[Float, (N, 3, H, W)]) -> Float:
    return relay.numel(brighter(x)) * 1.0


@relay
def chosen(x: Tensor[Float, (N, 3, H, W)], twice: bool) -> Float:
    y = brighter(relay.to_layout(x, "NHWC")) if twice else x
    return relay.numel(y) * 1.0


@relay
def main() -> int:
    x = relay.zeros(2, 3, 4, 4)
    total = rows(x).sum() + shifted(x, relay.zeros(3, 1, 1)) + channels(x, relay.zeros(4))
    return int(total + called(x) + chosen(x, True))
