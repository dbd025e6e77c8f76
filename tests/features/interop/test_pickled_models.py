"""Models, functions and transforms in pickles; states of torch's networks with batch norms."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def inner(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    return relay.dropout(relay.tanh(relay.linear(x, out_features=4)))


@relay_model
def net(x: Tensor[Float, (N, 4)], *, hidden: int = 3) -> Tensor[Float, (N, 2)]:
    normed = relay.batch_norm(relay.linear(inner(x), out_features=hidden, name="0"), name="1")
    return relay.linear(normed, out_features=2, name="2")


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(net(x) ** 2)


def _by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def _by_torch(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("again", [_by_pickle, _by_torch])
def test_a_model_comes_back_with_its_values_and_its_mode(again: Callable[[Any], Any]) -> None:
    model = relay.create_model(net, seed=0, hidden=5)
    x = torch.randn(6, 4)
    model(x)
    found = again(model)
    assert found.training
    torch.testing.assert_close(found(x), model(x))  # the keys of dropout came along
    found.eval(), model.eval()
    before = model(x)
    torch.testing.assert_close(found(x), before)
    relay.update_model_params(found, relay.grad(found, loss, (x,)), lr=0.1)
    assert not torch.equal(found(x), before)
    torch.testing.assert_close(model(x), before)


def test_functions_are_pickled_by_name() -> None:
    assert _by_pickle(loss) is loss
    assert _by_pickle(net) is net
    model, x = relay.create_model(net, seed=0).eval(), torch.randn(3, 4)
    found = _by_pickle(relay.grad(loss))
    assert torch.equal(model.bind(found)(x), model.bind(relay.grad(loss))(x))


def test_what_has_no_name_says_so() -> None:
    @relay_model
    def local(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
        return relay.linear(x, out_features=2)

    with pytest.raises(pickle.PicklingError, match=r"relay\.export_model"):
        pickle.dumps(relay.create_model(local))


def test_a_state_of_torch_with_batch_norms_is_loaded() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    theirs.append(torch.nn.Linear(3, 2))
    theirs(torch.randn(9, 4))
    ours = relay.create_model(plain)
    assert not any(ours.load_state_dict(theirs.state_dict()))
    x = torch.randn(5, 4)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))
    theirs.load_state_dict(ours.state_dict())
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        ours.load_state_dict({**theirs.state_dict(), "2.num_batches_tracked": torch.tensor(1)})


@relay_model
def plain(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    normed = relay.batch_norm(relay.linear(x, out_features=3, name="0"), name="1")
    return relay.linear(normed, out_features=2, name="2")
