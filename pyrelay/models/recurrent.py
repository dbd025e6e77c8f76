"""Recurrent networks: cells, and the folds, maps and unfolds that drive them over lists.

A cell takes a state and an input, and gives the new state and an output; which of the two a network
uses, and in which order it visits the inputs, is a function of the prelude. The view is Olah's
("Neural Networks, Types, and Functional Programming", 2015), the functions are those of Relay's
documentation of data types. Weights have the layout of torch's cells, so state dicts fit (see
`TORCH_NAMES`).
"""

from __future__ import annotations

from typing import Final, TypeVar

from ..annotations import Dim, Float, Fn, Tensor
from ..decorators import relay, relay_model
from ..prelude import List

S = TypeVar("S")
S2 = TypeVar("S2")
X = TypeVar("X")
Y = TypeVar("Y")
Y2 = TypeVar("Y2")
B, D, H = Dim("B"), Dim("D"), Dim("H")

TORCH_NAMES: Final = {
    "weight_ih": "from_input.weight",
    "weight_hh": "from_state.weight",
    "bias_ih": "from_input.bias",
    "bias_hh": "from_state.bias",
}
"""torch's names of the parameters of a cell: `cell.load_state_dict(sd, rename=TORCH_NAMES)`."""


@relay_model
def rnn_cell(
    state: Tensor[Float, (B, H)], x: Tensor[Float, (B, D)]
) -> tuple[Tensor[Float, (B, H)], Tensor[Float, (B, H)]]:
    """The cell of Elman, as `torch.nn.RNNCell`: the output is the new state."""
    size = state.shape[1]
    from_input = relay.linear(x, out_features=size)
    from_state = relay.linear(state, out_features=size)
    new = relay.tanh(from_input + from_state)
    return new, new


@relay_model
def gru_cell(
    state: Tensor[Float, (B, H)], x: Tensor[Float, (B, D)]
) -> tuple[Tensor[Float, (B, H)], Tensor[Float, (B, H)]]:
    """The gated recurrent unit, as `torch.nn.GRUCell`: the output is the new state."""
    size = state.shape[1]
    from_input = relay.linear(x, out_features=3 * size)
    from_state = relay.linear(state, out_features=3 * size)
    reset = relay.sigmoid(from_input[:, :size] + from_state[:, :size])
    update = relay.sigmoid(from_input[:, size : 2 * size] + from_state[:, size : 2 * size])
    candidate = relay.tanh(from_input[:, 2 * size :] + reset * from_state[:, 2 * size :])
    new = (1 - update) * candidate + update * state
    return new, new


@relay_model
def lstm_cell(
    state: tuple[Tensor[Float, (B, H)], Tensor[Float, (B, H)]], x: Tensor[Float, (B, D)]
) -> tuple[tuple[Tensor[Float, (B, H)], Tensor[Float, (B, H)]], Tensor[Float, (B, H)]]:
    """Long short-term memory, as `torch.nn.LSTMCell`: the state is the pair (hidden, memory), the
    output the hidden part."""
    hidden, memory = state
    size = hidden.shape[1]
    from_input = relay.linear(x, out_features=4 * size)
    from_state = relay.linear(hidden, out_features=4 * size)
    gates = from_input + from_state
    entry = relay.sigmoid(gates[:, :size])
    forget = relay.sigmoid(gates[:, size : 2 * size])
    candidate = relay.tanh(gates[:, 2 * size : 3 * size])
    leave = relay.sigmoid(gates[:, 3 * size :])
    new_memory = forget * memory + entry * candidate
    new_hidden = leave * relay.tanh(new_memory)
    return (new_hidden, new_memory), new_hidden


@relay
def encode(cell: Fn[[S, X], tuple[S, Y]], inputs: List[X], start: S) -> S:
    """Return the state after all inputs; the outputs are not used."""
    return relay.foldl(lambda state, x: cell(state, x)[0], start, inputs)


@relay
def generator(cell: Fn[[S, X], tuple[S, Y]], choose: Fn[[S], X | None], start: S) -> List[Y]:
    """Return the outputs of a cell that gets its next input from its own state, until `choose`
    gives None."""

    def step(state: S) -> tuple[S, Y] | None:
        x = choose(state)
        if x is None:
            return None
        return cell(state, x)

    return relay.unfoldr(step, start)


@relay
def general_rnn(cell: Fn[[S, X], tuple[S, Y]], start: S, inputs: List[X]) -> tuple[S, List[Y]]:
    """Return the last state and an output for every input. `map_accumr` visits the inputs from the
    last to the first, as Relay's does; the outputs stand as the inputs do."""
    return relay.map_accumr(cell, start, inputs)


@relay
def forward_rnn(cell: Fn[[S, X], tuple[S, Y]], start: S, inputs: List[X]) -> tuple[S, List[Y]]:
    """Return the last state and an output for every input, from the first input to the last."""
    state, backwards = relay.map_accuml(cell, start, inputs)
    return state, relay.rev(backwards)


@relay
def bidirectional_rnn(
    cell: Fn[[S, X], tuple[S, Y]],
    backward_cell: Fn[[S2, X], tuple[S2, Y2]],
    start: S,
    backward_start: S2,
    inputs: List[X],
) -> List[tuple[Y, Y2]]:
    """Return for every input the pair of outputs of a cell that came from the front and one that
    came from the back.

    The version in Relay's documentation zips the outputs of `map_accumr` with those of
    `map_accuml`, which come reversed, so it pairs the first input's output with the last one's;
    here both stand as the inputs do.
    """
    _, forward = forward_rnn(cell, start, inputs)
    _, backward = general_rnn(backward_cell, backward_start, inputs)
    return relay.zip(forward, backward)
