"""Images in the layout NHWC through normalisation, transposed convolutions, resampling, `cat`,
loops and recursion, as types say and by the option."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from pyrelay import NHWC, CheckError, Dim, Float, Int, Tensor, options, relay

N, H, W = Dim("N"), Dim("H"), Dim("W")
IMAGE = Tensor[Float, (N, 4, H, W)]
KERNEL = Tensor[Float, (4, 4, 3, 3)]
UP = Tensor[Float, (4, 4, 2, 2)]
CHANNELS = Tensor[Float, (4,)]


@relay
def inner(
    x: Tensor[Float, (N, 4, H, W), NHWC], w: KERNEL, up: UP, g: CHANNELS, b: CHANNELS
) -> Tensor[Float, (N, 4, H, W), NHWC]:
    y = relay.group_norm(relay.conv2d(x, w, padding=1), 2, g, b)
    y = relay.conv_transpose2d(y, up, stride=2)
    y = relay.interpolate(y, scale_factor=0.5, mode="nearest")
    return relay.split(relay.cat([y, x], dim=1), (3, 4, 1), dim=1)[1]


@relay
def laid(x: IMAGE, w: KERNEL, up: UP, g: CHANNELS, b: CHANNELS) -> Float:
    y = inner(relay.to_layout(x, "NHWC"), w, up, g, b)
    return (relay.to_layout(y, "NCHW") ** 2).sum()


@relay
def written(x: IMAGE, w: KERNEL, up: UP, g: CHANNELS, b: CHANNELS) -> Float:
    y = relay.group_norm(relay.conv2d(x, w, padding=1), 2, g, b)
    y = relay.conv_transpose2d(y, up, stride=2)
    y = relay.interpolate(y, scale_factor=0.5, mode="nearest")
    return (relay.split(relay.cat([y, x], dim=1), (3, 4, 1), dim=1)[1] ** 2).sum()


def plain(*args: torch.Tensor) -> torch.Tensor:
    x, w, up, g, b = args
    y = functional.group_norm(functional.conv2d(x, w, padding=1), 2, g, b)
    y = functional.conv_transpose2d(y, up, stride=2)
    y = functional.interpolate(y, scale_factor=0.5, mode="nearest")
    return (torch.cat([y, x], 1)[:, 3:7] ** 2).sum()


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X, WEIGHT = random(2, 4, 6, 8), 0.3 * random(4, 4, 3, 3, seed=1)
ARGS = (X, WEIGHT, 0.3 * random(4, 4, 2, 2, seed=2), random(4, seed=3), random(4, seed=4))
LOWERINGS = ("evaluator", "torch", pytest.param("c", marks=pytest.mark.slow))


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_images_that_types_lay_out(lowering: str) -> None:
    expected = torch.func.grad(plain, argnums=(0, 1, 2, 3, 4))(*ARGS)
    with options(lowering=lowering):
        close(laid(*ARGS), plain(*ARGS))
        close(relay.grad(laid)(*ARGS), expected)
        each = relay.vmap(laid, in_axes=(0, None, None, None, None))(X[:, None], *ARGS[1:])
    close(each, torch.stack([plain(x, *ARGS[1:]) for x in X[:, None]]))


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_images_that_the_option_lays_out(lowering: str) -> None:
    expected = torch.func.grad(plain, argnums=(0, 1, 2, 3, 4))(*ARGS)
    with options(lowering=lowering, layout="NHWC"):
        close(written(*ARGS), plain(*ARGS))
        close(relay.grad(written)(*ARGS), expected)


@relay
def joined(x: IMAGE, w: KERNEL) -> Float:
    y = relay.conv2d(x, w, padding=1)
    z = relay.conv2d(relay.relu(y), w, padding=1)
    a, b = relay.split(relay.tanh(relay.cat([y, z], dim=1)), 4, dim=1)
    return relay.conv2d(a * b, w).sum()


def test_a_stretch_goes_on_through_cat_and_split() -> None:
    with options(layout="NHWC"):
        assert joined.show("anf").count("permute_copy") == 2


@relay
def looped(x: IMAGE, w: KERNEL, n: Int) -> Float:
    for _ in range(n):
        x = relay.tanh(relay.conv2d(x, w, padding=1))
    return x.sum()


@relay
def nested(x: IMAGE, w: KERNEL, n: Int) -> IMAGE:
    if n == 0:
        return x
    return nested(relay.tanh(relay.conv2d(x, w, padding=1)), w, n - 1) + x


@relay
def recursive(x: IMAGE, w: KERNEL, n: Int) -> Float:
    return nested(x, w, n).sum()


def plain_looped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.tanh(functional.conv2d(x, w, padding=1))
    return x.sum()


def plain_recursive(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    total = x
    for _ in range(3):
        x = torch.tanh(functional.conv2d(x, w, padding=1))
        total = total + x
    return total.sum()


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_loops_and_recursion_by_the_option(lowering: str) -> None:
    for program, meaning in ((looped, plain_looped), (recursive, plain_recursive)):
        expected = torch.func.grad(meaning, argnums=(0, 1))(X, WEIGHT)
        with options(lowering=lowering, layout="NHWC"):
            value, gradient = relay.value_and_grad(program)(X, WEIGHT, 3)
        close(value, meaning(X, WEIGHT))
        close(gradient, expected)


def test_images_in_two_layouts_are_not_joined() -> None:
    @relay
    def mixed(x: IMAGE) -> IMAGE:
        return relay.cat([relay.to_layout(x, "NHWC"), x], dim=0)

    with pytest.raises(CheckError, match="takes images in one layout, not NHWC and NCHW"):
        mixed.check()
