"""The cost of a call above its kernels, where kernels take next to nothing: a layer of 4x4.

    python -m benchmarks.calls [WORD ...]

Each case is timed against eager torch that does the same, and against its own kernels: the C
functions that a call of it runs, repeated by themselves. Of calls that join
torch's graph the floor is shown too: as many `torch.autograd.Function`s whose forward and backward
return tensors made in advance. Each figure is the best of several repeats, in microseconds of this
thread's own time. Values are compared before anything is timed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import thread_time
from timeit import repeat
from typing import Any, TypeAlias

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded
os.environ["PYRELAY_LOWERING"] = "c"

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from pyrelay import Float, Model, Tensor, relay, relay_model
from pyrelay.lower_c.building import Library

SIZE = 4
RATE = 1e-4
Call: TypeAlias = Callable[[], Any]


@dataclass(frozen=True)
class Point:
    """Data: two vectors."""

    first: Tensor[Float, (SIZE,)]
    second: Tensor[Float, (SIZE,)]


@dataclass(frozen=True)
class Case:
    """A call of ours, the same in eager torch, and its floor, if it has one. `make` prepares the
    call. Where not `records`, torch records nothing."""

    name: str
    make: Callable[[], Call]
    eager: Call
    floor: Call | None = None
    records: bool = True


def new_layer() -> Any:
    """Return the definition of a linear layer, of which nothing has been built."""

    @relay_model
    def layer(x: Tensor[Float, (SIZE, SIZE)]) -> Tensor[Float, (SIZE, SIZE)]:
        return relay.linear(x, out_features=SIZE)

    return layer


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input and a target."""
    numbers = torch.linspace(-1, 1, 2 * SIZE * SIZE)
    return numbers[: SIZE * SIZE].reshape(SIZE, SIZE), numbers[SIZE * SIZE :].reshape(SIZE, SIZE)


def weights() -> list[torch.Tensor]:
    """Return the parameters of the layer for torch."""
    return [
        p.detach().clone().requires_grad_() for p in relay.create_model(new_layer()).parameters()
    ]


def pure() -> Call:
    """Return the call of a function of one tensor."""

    @relay
    def scaled(x: Tensor[Float, (SIZE, SIZE)]) -> Tensor[Float, (SIZE, SIZE)]:
        return relay.tanh(x * 2.0 + 1.0)

    return partial(scaled, arguments()[0])


def eager_pure() -> Call:
    """Return the same in torch."""
    x = arguments()[0]
    return lambda: torch.tanh(x * 2.0 + 1.0)


def on_data() -> Call:
    """Return the call of a function of an instance of a data class."""

    @relay
    def difference(p: Point) -> Tensor[Float, (SIZE,)]:
        return relay.tanh(p.first - p.second)

    return partial(difference, Point(*arguments()[0][:2].contiguous().unbind()))


def eager_on_data() -> Call:
    """Return the same in torch."""
    p = Point(*arguments()[0][:2].contiguous().unbind())
    return lambda: torch.tanh(p.first - p.second)


def inference() -> Call:
    """Return the call of a model."""
    return partial(relay.create_model(new_layer()), arguments()[0])


def eager_inference() -> Call:
    """Return the same in torch."""
    module = nn.Linear(SIZE, SIZE)
    for own, given in zip(module.parameters(), weights(), strict=True):
        own.data = given.detach()
    return partial(module, arguments()[0])


def in_script() -> Call:
    """Return a step of training that a script makes."""
    layer = new_layer()

    @relay
    def loss(x: Tensor[Float, (SIZE, SIZE)], y: Tensor[Float, (SIZE, SIZE)]) -> Float:
        return relay.mse_loss(layer(x), y)

    model, given = relay.create_model(layer), arguments()

    def step() -> Any:
        value, grads = relay.value_and_grad(model, loss, given)
        relay.update_model_params(model, grads, lr=RATE)
        return value

    return step


def in_program() -> Call:
    """Return a step of training as a function."""

    @relay_model
    def layer(x: Tensor[Float, (SIZE, SIZE)]) -> Tensor[Float, (SIZE, SIZE)]:
        return relay.linear(x, out_features=SIZE)

    @relay
    def loss(x: Tensor[Float, (SIZE, SIZE)], y: Tensor[Float, (SIZE, SIZE)]) -> Float:
        return relay.mse_loss(layer(x), y)

    @relay
    def step(
        model: Model[layer], x: Tensor[Float, (SIZE, SIZE)], y: Tensor[Float, (SIZE, SIZE)]
    ) -> Float:
        value, grads = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, grads, lr=RATE)
        return value

    return partial(step, relay.create_model(layer), *arguments())


def eager_step() -> Call:
    """Return the same in torch."""
    (weight, bias), (x, y) = weights(), arguments()
    optimizer = torch.optim.SGD([weight, bias], lr=RATE)

    def step() -> Any:
        optimizer.zero_grad()
        value = nn.functional.mse_loss(nn.functional.linear(x, weight, bias), y)
        value.backward()
        optimizer.step()
        return value

    return step


def joined_model() -> Call:
    """Return a model in a loop of torch: forward and backward."""
    return _differentiated(relay.create_model(new_layer()))


def eager_joined_model() -> Call:
    """Return the same in torch."""
    module = nn.Linear(SIZE, SIZE)
    for own, given in zip(module.parameters(), weights(), strict=True):
        own.data = given.detach()
    return _differentiated(module)


def _differentiated(model: nn.Module) -> Call:
    x, seed = arguments()
    params = list(model.parameters())

    def step() -> Any:
        y = model(x)
        y.backward(seed)
        found = [p.grad for p in params]
        for p in params:
            p.grad = None
        return found

    return step


class Nothing(torch.autograd.Function):
    """A node of torch's graph that computes nothing."""

    @staticmethod
    def forward(ctx: Any, made: torch.Tensor, grads: Any, *inputs: torch.Tensor) -> Any:
        """Return a tensor made in advance."""
        ctx.save_for_backward(*inputs)
        ctx.grads = grads
        return made.detach()

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Return gradients made in advance."""
        _ = ctx.saved_tensors
        return None, None, None, *ctx.grads


class Idle(nn.Module):
    """The layer without its computation."""

    def __init__(self) -> None:
        super().__init__()
        for name, given in zip(("weight", "bias"), weights(), strict=True):
            self.register_parameter(name, nn.Parameter(given.detach()))
        self.made = torch.zeros(SIZE, SIZE)
        self.grads = [torch.zeros_like(p) for p in self.parameters()]
        self.own = list(self.parameters())

    def forward(self, x: torch.Tensor) -> Any:
        """Return a tensor made in advance."""
        return Nothing.apply(self.made, self.grads, x, *self.own)


CASES = (
    Case("function of a tensor", pure, eager_pure(), records=False),
    Case("function of data", on_data, eager_on_data(), records=False),
    Case("model, inference", inference, eager_inference(), records=False),
    Case("step of training, in a script", in_script, eager_step()),
    Case("step of training, as a function", in_program, eager_step()),
    Case(
        "model in torch's graph, with backward",
        joined_model,
        eager_joined_model(),
        _differentiated(Idle()),
    ),
)


@contextmanager
def _timed(spent: list[float]) -> Generator[None]:
    """Take the seconds of the C functions of libraries that are loaded inside: each call of one is
    repeated while its operands are there."""
    plain, number = Library.function, 2000

    def function(self: Library, name: str, parameters: Any, result: Any = None) -> Any:
        found = plain(self, name, parameters, result)

        def run(address: int) -> int:
            times = repeat(lambda: found(address), number=number, repeat=5, timer=thread_time)
            spent.append(min(times) / number)
            return found(address)

        return run

    Library.function = function
    try:
        yield
    finally:
        Library.function = plain


def kernels(case: Case) -> float:
    """Return the seconds that the kernels of a call take by themselves."""
    spent: list[float] = []
    with _timed(spent):
        call = case.make()
        for _ in range(3):
            spent.clear()
            call()
    return sum(spent)


def check(case: Case, call: Call) -> None:
    """Stop unless a case gives what eager torch gives."""
    torch.testing.assert_close(call(), case.eager(), rtol=1e-4, atol=1e-5)


def seconds(call: Call) -> float:
    """Return the processor time of one call on this thread."""
    call()
    number = 200
    return min(repeat(call, number=number, repeat=25, timer=thread_time)) / number


def measured(case: Case) -> tuple[str, ...]:
    """Return the row of a case, in microseconds."""
    torch.set_grad_enabled(case.records)
    call = case.make()
    check(case, call)
    own, inside, eager = seconds(call), kernels(case), seconds(case.eager)
    floor = "" if case.floor is None else f"{seconds(case.floor) * 1e6:.1f}"
    torch.set_grad_enabled(True)
    return case.name, *(f"{s * 1e6:.1f}" for s in (own, inside, own - inside, eager)), floor


def main(words: list[str]) -> None:
    """Measure and print."""
    table = Table(title="calls, microseconds")
    for heading in ("call", "pyrelay", "its kernels", "above them", "eager torch", "floor"):
        table.add_column(heading, justify="left" if heading == "call" else "right")
    for case in CASES:
        if not words or any(word in case.name for word in words):
            table.add_row(*measured(case))
    Console(width=100).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
