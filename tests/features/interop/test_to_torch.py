"""Exported models as programs of torch.export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def layer(x: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 8)]:
    return relay.tanh(relay.linear(x, out_features=8))


@relay_model
def images(x: Tensor[Float, (N, 3, 8, 8)]):
    h = relay.batch_norm(relay.conv2d(x, out_channels=4, kernel_size=3, padding=1), name="norm")
    h = relay.linear(relay.flatten(relay.max_pool2d(relay.relu(h), 2), 1), out_features=8)
    for _ in range(3):
        h = layer(h)
    return relay.linear(relay.dropout(h), out_features=5, name="last"), h


@relay_model
def rows(x: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 2)]:
    return relay.softmax(relay.linear(layer(x) * x.shape[1], out_features=2), 1)


CASES: Any = [(images, (3, 8, 8)), (rows, (8,))]


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # torch 2.11 reading its own
@pytest.mark.parametrize(("net", "shape"), CASES)
def test_a_graph_gives_the_models_values_for_any_batch(
    net: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    model = relay.create_model(net, seed=0)
    model(torch.randn(6, *shape))
    exported = relay.export_model(model)
    program = exported.to_torch(torch.randn(4, *shape))
    assert set(model.state_dict()) <= set(program.state_dict)
    assert program.graph_signature.user_inputs == ("x",)
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = torch.export.load(tmp_path / "net.pt2").module()
    for batch in (2, 7):
        x = torch.randn(batch, *shape)
        torch.testing.assert_close(program.module()(x), exported(x))
        torch.testing.assert_close(loaded(x), exported(x))


def test_the_graph_keeps_weights_of_its_own() -> None:
    exported = relay.export_model(relay.create_model(rows, seed=0))
    x = torch.randn(3, 8)
    program, before = exported.to_torch(x), exported(x)
    with torch.no_grad():
        for parameter in program.parameters():
            parameter.zero_()
    torch.testing.assert_close(exported(x), before)
