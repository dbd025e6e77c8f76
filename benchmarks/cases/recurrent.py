"""Recurrent networks: loops whose steps are layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from benchmarks.cases.case import Calling, Case, Gradient, Work
from pyrelay import Dim, Float, Tensor, relay

T, B, D, H = Dim("T"), Dim("B"), Dim("D"), Dim("H")
Inputs = Tensor[Float, (T, B, D)]
State = Tensor[Float, (B, H)]


@relay
def lstm(
    w: Tensor[Float, (4 * H, D)],
    u: Tensor[Float, (4 * H, H)],
    b: Tensor[Float, (4 * H,)],
    xs: Inputs,
    start: State,
) -> State:
    """Return the last hidden state."""
    hidden, memory = start, start
    size = start.shape[1]
    for x in xs:
        gates = relay.linear(x, w, b) + relay.linear(hidden, u)
        entry = relay.sigmoid(gates[:, :size])
        forget = relay.sigmoid(gates[:, size : 2 * size])
        candidate = relay.tanh(gates[:, 2 * size : 3 * size])
        leave = relay.sigmoid(gates[:, 3 * size :])
        memory = forget * memory + entry * candidate
        hidden = leave * relay.tanh(memory)
    return hidden


@relay
def lstm_loss(
    w: Tensor[Float, (4 * H, D)],
    u: Tensor[Float, (4 * H, H)],
    b: Tensor[Float, (4 * H,)],
    xs: Inputs,
    start: State,
) -> Float:
    """Return a number that depends on the last hidden state."""
    return relay.sum(lstm(w, u, b, xs, start) ** 2)


def peer_lstm(lib: Any, w: Any, u: Any, b: Any, xs: Any, start: Any) -> Any:
    """Return the same state."""
    size = start.shape[1]

    def step(state: Any, x: Any) -> Any:
        hidden, memory = state
        gates = lib.linear(x, w, b) + lib.linear(hidden, u)
        entry = lib.sigmoid(gates[:, :size])
        forget = lib.sigmoid(gates[:, size : 2 * size])
        candidate = lib.tanh(gates[:, 2 * size : 3 * size])
        leave = lib.sigmoid(gates[:, 3 * size :])
        memory = forget * memory + entry * candidate
        return leave * lib.tanh(memory), memory

    return lib.scan(step, (start, start), xs)[0]


def peer_lstm_loss(lib: Any, *args: Any) -> Any:
    """Return the same loss."""
    return lib.sum(peer_lstm(lib, *args) ** 2)


def _torch_lstm(module: torch.nn.LSTM, args: tuple[Any, ...]) -> Any:
    """Return the last hidden state by torch's own network."""
    w, u, b, xs, start = args
    zero = torch.zeros_like(b)
    for name, value in zip(
        ("weight_ih", "weight_hh", "bias_ih", "bias_hh"), (w, u, b, zero), strict=True
    ):
        getattr(module, f"{name}_l0").data = value
    return module(xs, (start[None], start[None]))[0][-1]


@relay
def gru(
    w: Tensor[Float, (3 * H, D)],
    u: Tensor[Float, (3 * H, H)],
    b: Tensor[Float, (3 * H,)],
    xs: Inputs,
    start: State,
) -> State:
    """Return the last state."""
    state = start
    size = start.shape[1]
    for x in xs:
        given = relay.linear(x, w, b)
        own = relay.linear(state, u)
        reset = relay.sigmoid(given[:, :size] + own[:, :size])
        update = relay.sigmoid(given[:, size : 2 * size] + own[:, size : 2 * size])
        candidate = relay.tanh(given[:, 2 * size :] + reset * own[:, 2 * size :])
        state = (1.0 - update) * candidate + update * state
    return state


@relay
def gru_loss(
    w: Tensor[Float, (3 * H, D)],
    u: Tensor[Float, (3 * H, H)],
    b: Tensor[Float, (3 * H,)],
    xs: Inputs,
    start: State,
) -> Float:
    """Return a number that depends on the last state."""
    return relay.sum(gru(w, u, b, xs, start) ** 2)


def peer_gru(lib: Any, w: Any, u: Any, b: Any, xs: Any, start: Any) -> Any:
    """Return the same state."""
    size = start.shape[1]

    def step(state: Any, x: Any) -> Any:
        given, own = lib.linear(x, w, b), lib.linear(state, u)
        reset = lib.sigmoid(given[:, :size] + own[:, :size])
        update = lib.sigmoid(given[:, size : 2 * size] + own[:, size : 2 * size])
        candidate = lib.tanh(given[:, 2 * size :] + reset * own[:, 2 * size :])
        return (1.0 - update) * candidate + update * state

    return lib.scan(step, start, xs)


def peer_gru_loss(lib: Any, *args: Any) -> Any:
    """Return the same loss."""
    return lib.sum(peer_gru(lib, *args) ** 2)


def _args(gates: int, steps: int, batch: int, size: int) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        scale, rows = size**-0.5, gates * size
        return (
            torch.randn(rows, size) * scale,
            torch.randn(rows, size) * scale,
            torch.randn(rows) * scale,
            torch.randn(steps, batch, size),
            torch.zeros(batch, size),
        )

    return make


_UNROLLS: Final = {"torch.compile": "unrolls the loop, which takes it minutes to compile"}
_WRT: Final = ("w", "u", "b")


def _lstm(batch: int, limit: float) -> Case:
    module = torch.nn.LSTM(256, 256)

    def library(*args: Any) -> Any:
        with torch.inference_mode():
            return _torch_lstm(module, args)

    work = Work(
        args=_args(4, 100, batch, 256), limit=limit, skips=_UNROLLS, others={"nn.LSTM": library}
    )
    return Calling(f"LSTM, 100 steps, batch {batch}", lstm, peer_lstm, work)


def _sizes(gates: int, steps: int, batch: int, size: int, tolerance: float = 1e-4) -> Work:
    return Work(args=_args(gates, steps, batch, size), skips=_UNROLLS, tolerance=tolerance)


def _lstm_gradient(batch: int, limit: float) -> Case:
    work = Work(args=_args(4, 100, batch, 256), limit=limit, skips=_UNROLLS, tolerance=1e-3)
    name = f"LSTM gradient, 100 steps, batch {batch}"
    return Gradient(name, lstm_loss, peer_lstm_loss, work, _WRT)


CASES: Final[tuple[Case, ...]] = (
    _lstm(1, 10.7),
    _lstm(32, 3.2),
    _lstm_gradient(1, 5.7),
    _lstm_gradient(32, 2.7),
    Calling("GRU, 50 steps, batch 16", gru, peer_gru, _sizes(3, 50, 16, 128)),
    Gradient(
        "GRU gradient, 50 steps, batch 16",
        gru_loss,
        peer_gru_loss,
        _sizes(3, 50, 16, 128, tolerance=1e-3),
        _WRT,
    ),
    Calling("LSTM, 30 steps, batch 8, size 100", lstm, peer_lstm, _sizes(4, 30, 8, 100)),
    Calling("LSTM, 20 steps, batch 64, size 512", lstm, peer_lstm, _sizes(4, 20, 64, 512)),
    Calling("GRU, 100 steps, batch 1, size 256", gru, peer_gru, _sizes(3, 100, 1, 256)),
    Gradient(
        "LSTM gradient, 20 steps, batch 64, size 128",
        lstm_loss,
        peer_lstm_loss,
        _sizes(4, 20, 64, 128, tolerance=1e-3),
        _WRT,
    ),
)
