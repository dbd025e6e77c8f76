"""Models that compiled code creates with sizes and static arguments: the same as a script's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Model, Tensor, relay, relay_model

N, K, D = Dim("N"), Dim("K"), Dim("D")

WIDE = 7


@relay_model
def net(
    x: Tensor[Float, (N, K)], *, hidden: int = 3, squashed: bool = True
) -> Tensor[Float, (N, 2)]:
    h = relay.linear(x, out_features=hidden)
    if squashed:
        h = relay.tanh(h)
    return relay.linear(h, out_features=2)


@relay_model
def pair(x: Tensor[Float, (N, K)], y: Tensor[Float, (N, D)]) -> Tensor[Float, (N, 4)]:
    return relay.linear(x, out_features=4) + relay.linear(y, out_features=4)


@relay
def sized():
    model = relay.create_model(net, seed=1, dims={K: WIDE}, hidden=5, squashed=False)
    return relay.export_model(model)


@relay
def sized_by_text():
    model = relay.create_model(net, seed=1, dims={"K": 3 + 4}, hidden=5, squashed=False)
    return relay.export_model(model)


@relay
def called(x: Tensor[Float, (2, 7)]) -> Tensor[Float, (2, 2)]:
    model = relay.create_model(net, seed=2, dims={K: 7}, hidden=4)
    return model(x)


@relay
def sized_in_part(y: Tensor[Float, (2, D)]) -> Tensor[Float, (2, 4)]:
    model = relay.create_model(pair, dims={K: 3})
    return model(relay.ones((2, 3)), y)


@relay
def loss(x: Tensor[Float, (N, K)]) -> Float:
    return relay.sum(net(x) * net(x))


@relay
def train(x: Tensor[Float, (2, 7)]) -> Float:
    model = relay.create_model(net, seed=2, dims={K: 7})
    value = 0.0
    optimizer = relay.optim.adam(lr=1e-2)
    for _ in range(3):
        value, grads = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def passed_on(model: Model[net], x: Tensor[Float, (2, 7)]) -> Tensor[Float, (2, 2)]:
    return model(x)


@relay
def passes(x: Tensor[Float, (2, 7)]) -> Tensor[Float, (2, 2)]:
    model = relay.create_model(net, seed=2, dims={K: 7}, hidden=4)
    return passed_on(model, x)


X = torch.randn(2, 7, generator=torch.Generator().manual_seed(0))


def test_an_unused_model_has_the_sizes_and_the_static_arguments_given() -> None:
    outside = relay.create_model(net, seed=1, dims={K: 7}, hidden=5, squashed=False)
    for function in (sized, sized_by_text):
        for made in (function(), function.interpret()):
            torch.testing.assert_close(made(X), outside(X))
            shapes = [tuple(p.shape) for p in outside.parameters()]
            assert shapes == [(5, 7), (5,), (2, 5), (2,)]


@pytest.mark.parametrize("function", [called, passes])
def test_a_sized_model_is_called_and_passed_on(function: Any) -> None:
    outside = relay.create_model(net, seed=2, dims={K: 7}, hidden=4)
    torch.testing.assert_close(function(X), outside(X))
    torch.testing.assert_close(function.interpret(X), outside(X))


def test_sizes_that_are_not_given_come_from_the_use() -> None:
    y = torch.ones(2, 6)
    outside = relay.create_model(pair, dims={K: 3, D: 6})
    torch.testing.assert_close(sized_in_part(y), outside(torch.ones(2, 3), y))
    torch.testing.assert_close(sized_in_part.interpret(y), outside(torch.ones(2, 3), y))


def test_a_sized_model_is_trained_like_a_scripts() -> None:
    model = relay.create_model(net, seed=2, dims={K: 7})
    optimizer = relay.optim.adam(lr=1e-2)
    for _ in range(3):
        value, grads = relay.value_and_grad(model, loss, (X,))
        relay.update_model_params(model, grads, optimizer=optimizer)
    assert torch.allclose(train(X), value)
    assert torch.allclose(train.interpret(X), value)


@relay
def too_narrow(x: Tensor[Float, (2, 6)]) -> Tensor[Float, (2, 2)]:
    model = relay.create_model(net, dims={K: 7})
    return model(x)


def test_a_use_at_another_size_is_refused_where_it_is() -> None:
    with pytest.raises(CheckError) as caught:
        too_narrow.check()
    (found,) = caught.value.diagnostics
    assert found.primary is not None
    assert found.primary.span.file.line(found.primary.span.line).strip() == "return model(x)"
    assert found.primary.span.text == "x"


def test_a_script_names_only_sizes_that_the_model_has() -> None:
    with pytest.raises(CheckError) as caught:
        relay.create_model(net, dims={D: 7})
    assert caught.value.codes == ("RL415",)
