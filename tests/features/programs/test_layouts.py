"""Images in the layout NHWC: programs that convert them say so in their types, and give the values
of programs that do not."""

from __future__ import annotations

import pytest
import torch

from pyrelay import NHWC, Dim, Float, Model, Tensor, options, relay, relay_model

N, C, H, W = Dim("N"), Dim("C"), Dim("H"), Dim("W")


@relay
def bent(x: Tensor[Float, (N, C, H, W), NHWC]) -> Tensor[Float, (N, C, H, W), NHWC]:
    return relay.tanh(x) + x * 0.5


@relay
def laid(
    x: Tensor[Float, (N, 3, H, W)],
    w: Tensor[Float, (4, 3, 3, 3)],
    b: Tensor[Float, (4,)],
    shift: Tensor[Float, (4, 1, 1)],
) -> Tensor[Float, (N, Dim("R"))]:
    y = bent(relay.conv2d(relay.to_layout(x, "NHWC"), w, b, padding=1))
    y = y + relay.to_layout(shift, "NHWC")
    y = relay.max_pool2d(y, kernel_size=2) + relay.avg_pool2d(y, kernel_size=2)
    y = relay.dropout(y, p=0.25, training=True, key=relay.random.key(3))
    z = relay.to_layout(y, "NCHW")
    return relay.flatten(z, start_dim=1) * float(y.shape[1])


@relay
def plain(
    x: Tensor[Float, (N, 3, H, W)],
    w: Tensor[Float, (4, 3, 3, 3)],
    b: Tensor[Float, (4,)],
    shift: Tensor[Float, (4, 1, 1)],
) -> Tensor[Float, (N, Dim("R"))]:
    y = relay.conv2d(x, w, b, padding=1)
    y = relay.tanh(y) + y * 0.5 + shift
    y = relay.max_pool2d(y, kernel_size=2) + relay.avg_pool2d(y, kernel_size=2)
    y = relay.dropout(y, p=0.25, training=True, key=relay.random.key(3))
    return relay.flatten(y, start_dim=1) * float(y.shape[1])


@relay
def laid_loss(
    x: Tensor[Float, (N, 3, H, W)],
    w: Tensor[Float, (4, 3, 3, 3)],
    b: Tensor[Float, (4,)],
    shift: Tensor[Float, (4, 1, 1)],
) -> Float:
    return relay.mean(laid(x, w, b, shift) ** 2)


@relay
def plain_loss(
    x: Tensor[Float, (N, 3, H, W)],
    w: Tensor[Float, (4, 3, 3, 3)],
    b: Tensor[Float, (4,)],
    shift: Tensor[Float, (4, 1, 1)],
) -> Float:
    return relay.mean(plain(x, w, b, shift) ** 2)


@pytest.fixture
def images() -> tuple[torch.Tensor, ...]:
    """Return images, a weight, a bias and a shift."""
    torch.manual_seed(0)
    return tuple(torch.randn(s) for s in ((2, 3, 8, 6), (4, 3, 3, 3), (4,), (4, 1, 1)))


LOWERINGS = ("evaluator", "torch", pytest.param("c", marks=pytest.mark.slow))


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_values_and_derivatives_do_not_depend_on_the_layout(
    lowering: str, images: tuple[torch.Tensor, ...]
) -> None:
    with options(lowering=lowering):
        torch.testing.assert_close(laid(*images), plain(*images))
        grads, wanted = relay.grad(laid_loss)(*images), relay.grad(plain_loss)(*images)
        torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-5)
        directions = tuple(torch.randn_like(t) for t in images)
        pushed = relay.jvp(laid)(images, directions)
        torch.testing.assert_close(
            pushed, relay.jvp(plain)(images, directions), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_images_in_a_layout_are_batched(lowering: str, images: tuple[torch.Tensor, ...]) -> None:
    x, *rest = images
    stacked = torch.stack([x, x * 2, x + 1])
    axes = (0, None, None, None)
    with options(lowering=lowering):
        found = relay.vmap(laid, in_axes=axes)(stacked, *rest)
        torch.testing.assert_close(found, torch.stack([plain(each, *rest) for each in stacked]))
        grads = relay.vmap(relay.grad(laid_loss, wrt="w"), in_axes=axes)(stacked, *rest)
        wanted = torch.stack([relay.grad(plain_loss, wrt="w")(each, *rest) for each in stacked])
        torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-5)


def test_a_script_sees_images_in_the_order_of_their_shape() -> None:
    x = torch.randn(2, 3, 4, 5)
    found = bent(x)
    torch.testing.assert_close(found, x.tanh() + x * 0.5)
    assert found.is_contiguous()
    directions = torch.randn_like(x)
    wanted = (1 - x.tanh() ** 2 + 0.5) * directions
    torch.testing.assert_close(relay.jvp(bent)((x,), (directions,))[1], wanted)
    torch.testing.assert_close(relay.vmap(bent)(x[None]), x[None].tanh() + x[None] * 0.5)


@relay
def looped(x: Tensor[Float, (N, 3, H, W)], count: int) -> Tensor[Float, (N, 3, H, W)]:
    y = relay.to_layout(x, "NHWC")
    for i in range(count):
        y = bent(y) if i % 2 == 0 else relay.relu(y)
    pair = (y, x)
    return relay.to_layout(pair[0], "NCHW") + pair[1]


def test_loops_branches_and_tuples_carry_layouts() -> None:
    x = torch.randn(2, 3, 4, 5)
    wanted = x
    for i in range(5):
        wanted = wanted.tanh() + wanted * 0.5 if i % 2 == 0 else wanted.relu()
    torch.testing.assert_close(looped(x, 5), wanted + x)
    torch.testing.assert_close(looped.interpret(x, 5), wanted + x)


@relay_model
def block(x: Tensor[Float, (N, 4, H, W), NHWC]) -> Tensor[Float, (N, 4, H, W), NHWC]:
    y = relay.conv2d(x, out_channels=4, kernel_size=3, padding=1, bias=False)
    return relay.relu(relay.batch_norm(y) + x)


@relay_model
def net(x: Tensor[Float, (N, 3, 8, 6)]) -> Tensor[Float, (N, 5)]:
    y = relay.conv2d(relay.to_layout(x, "NHWC"), out_channels=4, kernel_size=3)
    y = relay.adaptive_avg_pool2d(block(block(y)), output_size=1)
    return relay.linear(relay.flatten(relay.to_layout(y, "NCHW"), start_dim=1), out_features=5)


@relay_model
def plain_block(x: Tensor[Float, (N, 4, H, W)]) -> Tensor[Float, (N, 4, H, W)]:
    y = relay.conv2d(x, out_channels=4, kernel_size=3, padding=1, bias=False)
    return relay.relu(relay.batch_norm(y) + x)


@relay_model
def plain_net(x: Tensor[Float, (N, 3, 8, 6)]) -> Tensor[Float, (N, 5)]:
    y = relay.conv2d(x, out_channels=4, kernel_size=3)
    y = relay.adaptive_avg_pool2d(plain_block(plain_block(y)), output_size=1)
    return relay.linear(relay.flatten(y, start_dim=1), out_features=5)


@relay
def step(model: Model[net], x: Tensor[Float, (N, 3, 8, 6)]) -> Float:
    value, grads = relay.value_and_grad(model, size, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def size(x: Tensor[Float, (N, 3, 8, 6)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def plain_step(model: Model[plain_net], x: Tensor[Float, (N, 3, 8, 6)]) -> Float:
    value, grads = relay.value_and_grad(model, plain_size, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def plain_size(x: Tensor[Float, (N, 3, 8, 6)]) -> Float:
    return relay.mean(plain_net(x) ** 2)


def test_models_of_laid_images_train_with_the_same_parameters_and_statistics() -> None:
    x = torch.randn(4, 3, 8, 6)
    model, other = relay.create_model(net, seed=0), relay.create_model(plain_net, seed=0)
    other.load_state_dict(
        {k.replace("block", "plain_block"): v for k, v in model.state_dict().items()}
    )
    for _ in range(3):
        torch.testing.assert_close(step(model, x), plain_step(other, x))
    pairs = zip(model.state_dict().items(), other.state_dict().items(), strict=True)
    for (name, own), (_, wanted) in pairs:
        if own.is_floating_point():
            torch.testing.assert_close(own, wanted, rtol=1e-3, atol=1e-5, msg=name)
    exported = relay.export_model(model.eval())
    torch.testing.assert_close(exported(x), other.eval()(x), rtol=1e-4, atol=1e-5)
