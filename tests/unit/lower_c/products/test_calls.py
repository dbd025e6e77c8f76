"""Calls of convolutions in programs run in C, and give what torch gives."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, options, relay, relay_model
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op, Sample
from pyrelay.kernels.backend import KernelFunction
from pyrelay.kernels.fusion.own_calls import OwnCalls
from pyrelay.kernels.outlined import outlined_of
from pyrelay.lower_c.products import has_code
from pyrelay.operators.primitive.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_backward,
    conv_input_grad,
    conv_weight_grad,
)
from pyrelay.passes.base import Context
from pyrelay.runtime.compile.evaluator import evaluate
from tests.ops.checks import samples
from tests.ops.fused import inputs
from tests.ops.test_kernels import program_of
from tests.tolerances import assert_kernel
from tests.unit.lower_c.running import BACKEND, CPU, left_to_torch

N = Dim("N")
OPS: tuple[Op, ...] = (conv1d, conv2d, conv_backward, conv_input_grad, conv_weight_grad)
CASES = [(op, sample) for op in OPS for sample in samples(op)]


def cut(op: Op, sample: Sample) -> tuple[Module, tuple[KernelFunction, ...]]:
    """Return the program of one call, and the kernels that are taken out of it."""
    module, _ = program_of(op, sample, is_named=False)
    found = outlined_of(OwnCalls(has_code).run(module, Context(entry="main")))
    return module, tuple(KernelFunction(name, group) for name, group in found.groups.items())


def is_left(sample: Sample, image: torch.Tensor, weight: torch.Tensor) -> bool:
    """Return whether a call is of one image without a batch dim, or pads its two sides unevenly."""
    reach = [(k - 1) * sample.attrs.get("dilation", 1) for k in weight.shape[2:]]
    is_uneven = sample.attrs.get("padding") == "same" and any(r % 2 for r in reach)
    return image.dim() != weight.dim() or is_uneven


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_every_sample_of_images_runs_in_c(op: Op, sample: Sample) -> None:
    module, kernels = cut(op, sample)
    given = inputs(op, sample)
    assert len(kernels) == (not is_left(sample, given[0], given[1]))
    in_rows = [t.contiguous() for t in given]
    for kernel in kernels:
        found = BACKEND.kernel(kernel, CPU, left_to_torch)(*in_rows)
        assert_kernel(found, evaluate(module, "main", given))


def test_what_is_not_of_images_of_known_size_is_left_to_torch() -> None:
    assert all(cut(conv3d, sample)[1] == () for sample in samples(conv3d))


@relay_model
def net(x: Tensor[Float, (N, 2, 11, 9)]) -> Tensor[Float, (N, 3)]:
    first = relay.conv2d(x, out_channels=5, kernel_size=3, stride=2, padding=1)
    second = relay.conv2d(relay.tanh(first), out_channels=4, kernel_size=2)
    return relay.linear(relay.flatten(second, start_dim=1), out_features=3)


@relay
def loss(x: Tensor[Float, (N, 2, 11, 9)]) -> Float:
    return relay.mean(net(x) * net(x))


@relay
def step(model: Model[net], x: Tensor[Float, (N, 2, 11, 9)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


def test_a_training_step_is_that_of_torch() -> None:
    torch.manual_seed(0)
    model, x = relay.create_model(net, seed=0), torch.randn(6, 2, 11, 9)
    weights = [w.clone().requires_grad_() for w in model.state_dict().values()]
    w1, b1, w2, b2, w3, b3 = weights
    first = torch.tanh(torch.nn.functional.conv2d(x, w1, b1, 2, 1))
    second = torch.nn.functional.conv2d(first, w2, b2).flatten(1)
    expected = torch.nn.functional.linear(second, w3, b3).square().mean()
    grads = torch.autograd.grad(expected, weights)
    with options(lowering="c"):
        assert "call" in step.explain()
        value = step(model, x)
    assert_kernel(torch.as_tensor(value), expected.detach())
    for found, weight, grad in zip(model.state_dict().values(), weights, grads, strict=True):
        assert_kernel(found, (weight - 0.1 * grad).detach())
