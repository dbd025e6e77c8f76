"""Operators called by a script."""

from __future__ import annotations

import inspect

import pytest
import torch

from pyrelay import RunError, relay


def test_a_call_takes_arguments_by_place_and_by_name() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert torch.equal(relay.softmax(x, 1), torch.softmax(x, 1))
    assert torch.equal(relay.softmax(dim=0, input=x), torch.softmax(x, 0))


def test_help_shows_what_a_call_takes() -> None:
    assert str(inspect.signature(relay.softmax)) == "(input, dim, dtype=None)"
    assert list(inspect.signature(relay.conv2d).parameters)[:3] == ["input", "weight", "bias"]


def test_a_call_that_does_not_fit_says_so() -> None:
    with pytest.raises(RunError, match="missing a required argument: 'dim'"):
        relay.softmax(torch.ones(2))
