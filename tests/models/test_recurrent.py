"""Recurrent networks of lists against torch's: values and gradients, over random lengths."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.models.recurrent import (
    TORCH_NAMES,
    bidirectional_rnn,
    encode,
    forward_rnn,
    general_rnn,
    generator,
    gru_cell,
    lstm_cell,
    rnn_cell,
)
from pyrelay.prelude import List

B, D, H = Dim("B"), Dim("D"), Dim("H")
BATCH, INPUT, SIZE = 2, 3, 4


@relay_model
def rnn_states(
    inputs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]
) -> tuple[Tensor[Float, (B, H)], List[Tensor[Float, (B, H)]]]:
    return forward_rnn(rnn_cell, start, inputs)


@relay_model
def gru_states(
    inputs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]
) -> tuple[Tensor[Float, (B, H)], List[Tensor[Float, (B, H)]]]:
    return forward_rnn(gru_cell, start, inputs)


@relay_model
def lstm_code(
    inputs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]
) -> Tensor[Float, (B, H)]:
    return encode(lstm_cell, inputs, (start, start))[0]


@relay_model
def both_ways(
    inputs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]
) -> List[tuple[Tensor[Float, (B, H)], Tensor[Float, (B, H)]]]:
    return bidirectional_rnn(gru_cell, gru_cell, start, start, inputs)


def inputs_of(length: int) -> list[torch.Tensor]:
    torch.manual_seed(length)
    return [torch.randn(BATCH, INPUT) for _ in range(length)]


def loaded(model: Any, site: str, theirs: torch.nn.Module, suffix: str = "") -> Any:
    """Return the model with the parameters of torch's module."""
    names = {k + suffix: f"{site}.{v}" for k, v in TORCH_NAMES.items()}
    state = {k: v for k, v in theirs.state_dict().items() if k in names}
    missing, _ = model.load_state_dict(state, strict=False, rename=names)
    assert not [k for k in missing if k.startswith(f"{site}.")]
    return names


def made(net: Any) -> Any:
    return relay.create_model(net, dims={D: INPUT, H: SIZE})


LENGTHS = (1, 2, 7)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    ("net", "site", "kind"),
    [(rnn_states, "rnn_cell", torch.nn.RNN), (gru_states, "gru_cell", torch.nn.GRU)],
    ids=["rnn", "gru"],
)
def test_states_are_those_of_torch(net: Any, site: str, kind: Any, length: int) -> None:
    theirs = kind(INPUT, SIZE)
    model = made(net)
    names = loaded(model, site, theirs, "_l0")
    inputs, start = inputs_of(length), torch.randn(BATCH, SIZE)
    last, outputs = model(inputs, start)
    expected, _ = theirs(torch.stack(inputs), start.unsqueeze(0))
    torch.testing.assert_close(torch.stack(list(outputs)), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(last, expected[-1], rtol=1e-5, atol=1e-5)
    (torch.stack(list(outputs)) ** 2).sum().backward()
    (expected**2).sum().backward()
    for name, parameter in theirs.named_parameters():
        ours = dict(model.named_parameters())[names[name]]
        torch.testing.assert_close(ours.grad, parameter.grad, rtol=1e-5, atol=1e-5)


@relay
def code_loss(inputs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]) -> Float:
    return relay.sum(lstm_code(inputs, start) ** 2)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_lstm_is_torchs(length: int) -> None:
    theirs = torch.nn.LSTM(INPUT, SIZE)
    model = made(lstm_code)
    names = loaded(model, "lstm_cell", theirs, "_l0")
    inputs, start = inputs_of(length), torch.randn(BATCH, SIZE)
    value, grads = relay.value_and_grad(model, code_loss, (inputs, start))
    states = (start.unsqueeze(0), start.unsqueeze(0))
    expected = (theirs(torch.stack(inputs), states)[0][-1] ** 2).sum()
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-5)
    expected.backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(grads[names[name]], parameter.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_bidirectional_network_is_torchs(length: int) -> None:
    theirs = torch.nn.GRU(INPUT, SIZE, bidirectional=True)
    model = made(both_ways)
    loaded(model, "gru_cell", theirs, "_l0")
    loaded(model, "gru_cell_2", theirs, "_l0_reverse")
    inputs, start = inputs_of(length), torch.randn(BATCH, SIZE)
    expected, _ = theirs(torch.stack(inputs), torch.stack([start, start]))
    outputs = torch.stack([torch.cat(pair, 1) for pair in model(inputs, start)])
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-5)


@relay
def counting_cell(state: Float, x: Float) -> tuple[Float, Float]:
    return state + x, state * 10 + x


@relay
def counted_right_to_left(xs: List[Float]) -> tuple[Float, List[Float]]:
    return general_rnn(counting_cell, 0.0, xs)


def test_the_general_network_runs_from_right_to_left() -> None:
    state, outputs = counted_right_to_left([1.0, 2.0, 3.0])
    assert float(state) == 6
    assert [float(y) for y in outputs] == [51.0, 32.0, 3.0]


@relay
def counted_down(start: Float) -> List[Float]:
    def halved(state: Float) -> Float | None:
        if state < 1.0:
            return None
        return state / 2

    def cell(state: Float, x: Float) -> tuple[Float, Float]:
        return x, state * x

    return generator(cell, halved, start)


def test_a_generator_runs_until_there_is_no_next_input() -> None:
    assert [float(y) for y in counted_down(4.0)] == [8.0, 2.0, 0.5]
    assert [float(y) for y in counted_down(0.5)] == []


def test_one_program_serves_all_lengths() -> None:
    model = made(lstm_code)
    start = torch.zeros(BATCH, SIZE)
    for length in range(20):
        relay.value_and_grad(model, code_loss, (inputs_of(length), start))
    before = code_loss.cache_info().entries
    relay.value_and_grad(model, code_loss, (inputs_of(33), start))
    assert code_loss.cache_info().entries == before
