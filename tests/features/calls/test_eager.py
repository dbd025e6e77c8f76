"""Operators called by a script."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch

from pyrelay import CheckError, RunError, relay
from pyrelay.ir.intrinsics import Intrinsic


def test_a_call_takes_arguments_by_place_and_by_name() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert torch.equal(relay.softmax(x, 1), torch.softmax(x, 1))
    assert torch.equal(relay.softmax(dim=0, input=x), torch.softmax(x, 0))


def test_help_shows_what_a_call_takes() -> None:
    assert str(inspect.signature(relay.softmax)) == "(input, dim, dtype=None)"
    assert list(inspect.signature(relay.conv2d).parameters)[:3] == ["input", "weight", "bias"]
    assert list(inspect.signature(relay.vjp).parameters) == ["f", "wrt"]
    assert (inspect.getdoc(relay.vjp) or "").startswith("Return the function `A -> (B, pullback)`")
    functions = (getattr(relay, intrinsic.value) for intrinsic in Intrinsic)
    assert all(f.__doc__ for f in functions)


def test_a_call_that_does_not_fit_says_so() -> None:
    with pytest.raises(RunError, match="missing a required argument: 'dim'"):
        relay.softmax(torch.ones(2))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("relay.tanh", relay.tanh),
        ("relay.const", relay.const),
        ("relay.foldl", lambda x: relay.foldl(relay.add, x, [x])),
    ],
)
def test_a_tensor_of_a_dtype_that_programs_do_not_have_is_refused(
    name: str, call: Callable[[torch.Tensor], object]
) -> None:
    with pytest.raises(RunError, match=f"`{name}` takes no tensor of dtype complex64"):
        call(torch.ones(2, dtype=torch.complex64))


def test_arguments_that_torch_takes_one_by_one_are() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(relay.zeros(2, 3), torch.zeros(2, 3))
    assert torch.equal(relay.expand(x[0], 4, -1), x[0].expand(4, -1))
    assert torch.equal(relay.permute(x, 1, 0), x.T)
    assert torch.equal(relay.einsum("ij,kj->ik", x, x), x @ x.T)
    assert torch.equal(relay.einsum("ij->j", x), relay.einsum("ij->j", (x,)))


def test_a_wrong_attribute_says_so() -> None:
    with pytest.raises(CheckError, match="`stride` of `conv2d` cannot be 0: it is at least 1"):
        relay.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), stride=0)


def test_a_key_is_given_by_name() -> None:
    x = torch.ones(8)
    assert torch.equal(relay.dropout(x, 0.5, training=False), x)
    key = relay.random.key(0)
    assert set(relay.dropout(x, 0.5, training=True, key=key).tolist()) <= {0.0, 2.0}


def test_a_parameter_outside_of_a_definition_is_refused() -> None:
    with pytest.raises(RunError, match="gives a parameter to the model in whose definition"):
        relay.param((3, 4), init="normal")
