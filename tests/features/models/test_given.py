"""Arguments that a script passes to functions over models, and the errors of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, RunError, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]):
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]):
    return relay.mean(net(x) ** 2)


X = torch.ones(2, 3)
MODEL = relay.create_model(net)


def grads() -> Any:
    return relay.grad(MODEL, loss, (X,))


MISTAKES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a definition differentiated": (
        lambda: relay.value_and_grad(net, loss, (X,)),
        "takes a model, not the definition `net`",
        "relay.create_model(net)",
    ),
    "a definition exported": (
        lambda: relay.export_model(net),
        "takes a model, not the definition `net`",
        "relay.create_model(net)",
    ),
    "a function exported": (
        lambda: relay.export_model(loss),
        "takes a model, not the function `loss`",
        "relay.create_model(net)",
    ),
    "gradients first": (
        lambda: relay.update_model_params(grads(), MODEL, lr=0.1),
        "takes a model, not a Grads",
        "the model comes first",
    ),
    "the value with the gradient": (
        lambda: relay.update_model_params(MODEL, relay.value_and_grad(MODEL, loss, (X,)), lr=0.1),
        "takes the gradient",
        "relay.grad(model, loss, (x, y))",
    ),
    "a text for the rate": (
        lambda: relay.update_model_params(MODEL, grads(), lr="0.1"),
        "`lr` is a number, not the str '0.1'",
        "lr=0.05",
    ),
    "a truth value for the rate": (
        lambda: relay.update_model_params(MODEL, grads(), lr=True),
        "`lr` is a number",
        "lr=0.05",
    ),
    "several rates": (
        lambda: relay.update_model_params(MODEL, grads(), lr=torch.ones(2)),
        "`lr` is a number, not Tensor[Float, (2,)]",
        "lr=0.05",
    ),
    "the class of an optimiser": (
        lambda: relay.update_model_params(MODEL, grads(), optimizer=torch.optim.SGD),
        "not the class SGD",
        "torch.optim.SGD(model.parameters(), lr=0.01)",
    ),
    "the maker of an optimiser": (
        lambda: relay.update_model_params(MODEL, grads(), optimizer=relay.optim.adam),
        "an update takes an optimiser",
        "before the loop",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_wrong_is_told_with_what_to_write(name: str) -> None:
    call, title, way = MISTAKES[name]
    before = {n: t.clone() for n, t in MODEL.state_dict().items()}
    with pytest.raises(RunError) as caught:
        call()
    (diagnostic,) = caught.value.diagnostics
    assert title in diagnostic.title
    assert way in (diagnostic.help or "")
    for key, tensor in MODEL.state_dict().items():
        torch.testing.assert_close(tensor, before[key], rtol=0.0, atol=0.0)


@pytest.mark.parametrize("rate", [1, 0.5, torch.tensor(0.5)])
def test_numbers_of_all_kinds_are_rates(rate: Any) -> None:
    model = relay.create_model(net)
    before = model.params["linear_1.bias"].clone()
    gradient = relay.grad(model, loss, (X,))
    relay.update_model_params(model, gradient, lr=rate)
    moved = before - float(rate) * gradient["linear_1.bias"]
    torch.testing.assert_close(model.params["linear_1.bias"], moved)


def test_a_name_that_is_not_there_is_an_attribute_error_with_the_near_miss() -> None:
    with pytest.raises(AttributeError, match=r"no `tanhh`\n.*did you mean `relay\.tanh`\?"):
        _ = relay.tanhh
    with pytest.raises(AttributeError, match=r"`relay\.random` has no `normall`"):
        _ = relay.random.normall
    assert not hasattr(relay, "__wrapped__")
