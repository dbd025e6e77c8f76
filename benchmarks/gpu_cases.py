"""The pieces of work that `gpu.py` measures: each in pyrelay and in torch, from the same tensors.

A training step of ours is one program, and torch's is compiled whole, with its optimiser; inputs of
compiled code are marked as lying still, so that no graph copies them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from pyrelay import Dim, Float, Int, Model, Tensor, bfloat16, relay, relay_model
from pyrelay.models import mlp as mlps
from pyrelay.models import transformer
from pyrelay.models.mlp import mlp
from pyrelay.models.recurrent import TORCH_NAMES as CELL_NAMES
from pyrelay.models.recurrent import lstm_cell
from pyrelay.models.transformer import TORCH_NAMES, transformer_block

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "lenet"))
from lenet import lenet
from lenet import loss as lenet_loss

RATE: Final = 0.01
N, D, B, T, C, M, K, H = (Dim(name) for name in "NDBTCMKH")


@dataclass(frozen=True)
class Case:
    """One piece of work: pyrelay's way and torch's, and the bytes and operations it takes at
    least. `reset` sets both back to where they started; `tolerance` is how far results may be
    apart, relatively and absolutely."""

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    compiled: Callable[[str], Callable[[], Any]]
    """Gives torch's way compiled by torch.compile in a mode."""
    bytes: int = 0
    operations: int = 0
    reset: Callable[[], None] = lambda: None
    trains: bool = False
    tolerance: float = 1e-3


# Elementwise code, row reductions, products


@relay
def scaled_gelu(
    x: Tensor[Float, (N, M)], w: Tensor[Float, (M,)], b: Tensor[Float, (M,)]
) -> Tensor[Float, (N, M)]:
    """Return `gelu(x * w + b)`."""
    return relay.gelu(x * w + b)


@relay
def chain(x: Tensor[Float, (N, M)]) -> Tensor[Float, (N, M)]:
    """Return 20 elementwise operations, one after another."""
    for _ in range(4):
        x = relay.tanh(x * 1.1 + 0.1)
        x = relay.sigmoid(x) * x - 0.05
    return x


@relay
def softmax(x: Tensor[Float, (N, M)]) -> Tensor[Float, (N, M)]:
    """Return the softmax of every row."""
    return relay.softmax(x, dim=-1)


@relay
def normed(
    x: Tensor[Float, (N, M)], w: Tensor[Float, (M,)], b: Tensor[Float, (M,)]
) -> Tensor[Float, (N, M)]:
    """Return every row with mean 0 and variance 1, scaled and moved."""
    return relay.layer_norm(x, (x.shape[1],), w, b)


@relay
def row_sums(x: Tensor[Float, (N, M)]) -> Tensor[Float, (N,)]:
    """Return the sum of the squares of every row."""
    return (x * x).sum(dim=1)


@relay
def layer(
    x: Tensor[bfloat16, (N, K)], w: Tensor[bfloat16, (M, K)], b: Tensor[bfloat16, (M,)]
) -> Tensor[bfloat16, (N, M)]:
    """Return a linear layer with an activation."""
    return relay.gelu(relay.linear(x, w, b))


def torch_chain(x: torch.Tensor) -> torch.Tensor:
    """Return `chain` in torch."""
    for _ in range(4):
        x = torch.tanh(x * 1.1 + 0.1)
        x = torch.sigmoid(x) * x - 0.05
    return x


def case_of(ours: Any, theirs: Any, args: tuple[torch.Tensor, ...], **about: Any) -> Case:
    """Return the case of a function in both languages."""

    def compiled(mode: str) -> Callable[[], Any]:
        made = torch.compile(theirs, mode=mode)
        lie_still(args)
        return lambda: made(*args)

    return Case(lambda: ours(*args), lambda: theirs(*args), compiled, **about)


def lie_still(args: tuple[torch.Tensor, ...]) -> None:
    """Declare to torch.compile that tensors do not move, so that its graphs need not copy them."""
    for arg in args:
        torch._dynamo.mark_static_address(arg)  # noqa: SLF001  documented under this name


def functions(device: torch.device, small: bool) -> dict[str, Callable[[], Case]]:
    """Return the cases without a model."""
    rows, columns, side = (16, 24, 32) if small else (16384, 4096, 4096)

    def made(ours: Any, theirs: Any, extra: int, written: int) -> Case:
        x = torch.randn(rows, columns, device=device)
        rest = [torch.randn(columns, device=device) for _ in range(extra)]
        moved = 4 * (x.numel() + extra * columns + written)
        return case_of(ours, theirs, (x, *rest), bytes=moved)

    def product() -> Case:
        x, w = (torch.randn(side, side, device=device).bfloat16() for _ in range(2))
        b = torch.randn(side, device=device).bfloat16()
        return case_of(
            layer,
            lambda x, w, b: F.gelu(F.linear(x, w, b)),
            (x, w, b),
            bytes=2 * (3 * side * side + side),
            operations=2 * side**3,
            tolerance=2e-2,
        )

    whole = rows * columns
    return {
        "gelu(x*w+b)": lambda: made(scaled_gelu, lambda x, w, b: F.gelu(x * w + b), 2, whole),
        "chain of 20": lambda: made(chain, torch_chain, 0, whole),
        "softmax": lambda: made(softmax, lambda x: x.softmax(-1), 0, whole),
        "layer norm": lambda: made(
            normed, lambda x, w, b: F.layer_norm(x, (columns,), w, b), 2, whole
        ),
        "sums of rows": lambda: made(row_sums, lambda x: (x * x).sum(1), 0, rows),
        "linear and gelu, bfloat16": product,
    }


# Training steps


@relay
def mlp_loss(x: Tensor[Float, (N, D)], y: Tensor[Int, (N,)]) -> Float:
    """Return the loss of the perceptron."""
    return relay.softmax_cross_entropy(mlp(x), y)


@relay
def block_loss(x: Tensor[Float, (B, T, C)]) -> Float:
    """Return the mean square of what a transformer block gives."""
    return (transformer_block(x) ** 2).mean()


@relay_model
def unrolled(xs: Tensor[Float, (T, B, D)], start: Tensor[Float, (B, H)]) -> Tensor[Float, (B, H)]:
    """Return the last state of an LSTM that reads `xs`."""
    state = (start, start)
    for x in xs:
        state, _ = lstm_cell(state, x)
    return state[0]


@relay
def lstm_loss(xs: Tensor[Float, (T, B, D)], start: Tensor[Float, (B, H)]) -> Float:
    """Return the mean square of the last state."""
    return (unrolled(xs, start) ** 2).mean()


@relay
def lenet_step(
    model: Model[lenet], x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]
) -> Float:
    """Return the loss, after a step of plain descent."""
    value, grads = relay.value_and_grad(model, lenet_loss, (x, y))
    relay.update_model_params(model, grads, lr=RATE)
    return value


@relay
def mlp_step(model: Model[mlp], x: Tensor[Float, (N, D)], y: Tensor[Int, (N,)]) -> Float:
    """Return the loss, after a step of plain descent."""
    value, grads = relay.value_and_grad(model, mlp_loss, (x, y))
    relay.update_model_params(model, grads, lr=RATE)
    return value


@relay
def block_step(model: Model[transformer_block], x: Tensor[Float, (B, T, C)]) -> Float:
    """Return the loss, after a step of plain descent."""
    value, grads = relay.value_and_grad(model, block_loss, (x,))
    relay.update_model_params(model, grads, lr=RATE)
    return value


@relay
def lstm_step(
    model: Model[unrolled], xs: Tensor[Float, (T, B, D)], start: Tensor[Float, (B, H)]
) -> Float:
    """Return the loss, after a step of plain descent."""
    value, grads = relay.value_and_grad(model, lstm_loss, (xs, start))
    relay.update_model_params(model, grads, lr=RATE)
    return value


class Unrolled(nn.Module):
    """`unrolled` in torch."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.lstm_cell = nn.LSTMCell(inputs, size)

    def forward(self, xs: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """Return the last state."""
        h = c = start
        for x in xs:
            h, c = self.lstm_cell(x, (h, c))
        return h


class LeNet(nn.Module):
    """The example's network in torch, with the names that it has there."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores."""
        h = F.max_pool2d(torch.tanh(self.conv1(x)), 2)
        h = F.max_pool2d(torch.tanh(self.conv2(h)), 2)
        return self.fc2(torch.tanh(self.fc1(h.flatten(1))))


def step_of(
    step: Any, model: Any, reference: nn.Module, args: tuple[torch.Tensor, ...], their_loss: Any
) -> Case:
    """Return a training step with plain descent: a program of ours, and a script of torch's."""
    starts = [p.detach().clone() for p in reference.parameters()]
    optimizer = torch.optim.SGD(reference.parameters(), lr=RATE)
    mine = dict(model.named_parameters())
    begun = {name: p.detach().clone() for name, p in mine.items()}

    def stepping(loss: Any, update: Callable[[], Any]) -> Callable[[], torch.Tensor]:
        def step() -> torch.Tensor:
            optimizer.zero_grad(set_to_none=True)
            value = loss(reference, *args)
            value.backward()
            update()
            return value.detach()

        return step

    def compiled(mode: str) -> Callable[[], torch.Tensor]:
        lie_still(args)
        update = torch.compile(optimizer.step, mode=mode)
        return stepping(torch.compile(their_loss, mode=mode), update)

    @torch.no_grad()
    def reset() -> None:
        for parameter, start in zip(reference.parameters(), starts, strict=True):
            parameter.copy_(start)
        for name, start in begun.items():
            mine[name].copy_(start)

    theirs = stepping(their_loss, optimizer.step)
    return Case(lambda: step(model, *args), theirs, compiled, reset=reset, trains=True)


def models(device: torch.device, small: bool) -> dict[str, Callable[[], Case]]:
    """Return the training steps."""

    def of_lenet() -> Case:
        torch.manual_seed(0)
        reference = LeNet().to(device)
        model = relay.create_model(lenet, seed=0).to(device)
        names = {"fc2.weight": "linear_1.weight", "fc2.bias": "linear_1.bias"}
        model.load_state_dict(reference.state_dict(), rename=names)
        size = 4 if small else 256
        x, y = torch.rand(size, 1, 28, 28), torch.randint(0, 10, (size,))
        args = x.to(device), y.to(device)
        return step_of(lenet_step, model, reference, args, lambda m, x, y: F.cross_entropy(m(x), y))

    def of_mlp() -> Case:
        torch.manual_seed(0)
        inputs, hidden, size = (5, 512, 3) if small else (784, 512, 1024)
        layers = (nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        reference = nn.Sequential(*layers, nn.Linear(hidden, 10)).to(device)
        model = relay.create_model(mlp, seed=0, dims={mlps.D: inputs}).to(device)
        old = {"0": "linear.0", "2": "linear.1", "4": "output"}
        names = {f"{o}.{p}": f"{n}.{p}" for o, n in old.items() for p in ("weight", "bias")}
        model.load_state_dict(reference.state_dict(), rename=names)
        args = torch.randn(size, inputs).to(device), torch.randint(0, 10, (size,)).to(device)
        return step_of(mlp_step, model, reference, args, lambda m, x, y: F.cross_entropy(m(x), y))

    def of_transformer() -> Case:
        torch.manual_seed(0)
        width, batch, time = (16, 2, 3) if small else (512, 8, 512)
        reference = nn.TransformerEncoderLayer(
            width, 8, 2048, 0.0, "gelu", batch_first=True, norm_first=True, device=device
        )
        model = relay.create_model(transformer_block, seed=0, dims={transformer.C: width})
        model = model.to(device)
        model.load_state_dict(reference.state_dict(), rename=TORCH_NAMES)
        x = torch.randn(batch, time, width).to(device)
        return step_of(block_step, model, reference, (x,), lambda m, x: m(x).square().mean())

    def of_lstm() -> Case:
        torch.manual_seed(0)
        time, batch, size = (3, 2, 5) if small else (20, 32, 256)
        reference = Unrolled(size, size).to(device)
        model = relay.create_model(unrolled, seed=0, dims={D: size, H: size}).to(device)
        names = {f"lstm_cell.{o}": f"lstm_cell.{n}" for o, n in CELL_NAMES.items()}
        model.load_state_dict(reference.state_dict(), rename=names)
        xs, start = torch.randn(time, batch, size), torch.zeros(batch, size)
        args = xs.to(device), start.to(device)
        return step_of(lstm_step, model, reference, args, lambda m, *a: m(*a).square().mean())

    return {
        "LeNet, training": of_lenet,
        "MLP, training": of_mlp,
        "transformer block, training": of_transformer,
        "LSTM of 20 steps, training": of_lstm,
    }


def cases(device: torch.device, *, small: bool) -> dict[str, Callable[[], Case]]:
    """Return every case by its name; what makes it is called when its turn comes."""
    return {**functions(device, small), **models(device, small)}
