"""Programs as nodes of torch's graph, differentiable to any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...diagnostics.catalogue.run import RunsOnce
from ...diagnostics.diagnostic import RunError
from ..border.autograd import Tree, as_typed, call_joined, tensors
from ..compile.derived import gradient_of, may_run_again, pullback_of
from ..compile.lowerings import Executable
from ..values.structure import lowered

if TYPE_CHECKING:
    import torch

    from ..compile.program import Program

Finish: TypeAlias = Callable[[Tree, Executable], Tree]
"""Return a program's result as its caller receives it."""


@final
class Joined:
    """A program whose calls take part in torch's autograd, by way of its pullback."""

    def __init__(self, name: str, program: Program, pullback: Program) -> None:
        self._name: Final = name
        self._program: Final = program
        self._pullback: Final = pullback

    def __call__(self, device: torch.device, host: Sequence[Any], finish: Finish) -> Tree:
        """Run the program as one node of torch's graph. Raises RunError."""
        compiled = self._pullback.compiled(device)
        # Torch calls the backward from threads of its own, where the modes of here are not.
        enter = _entering(copy_context()) if compiled.is_dispatched else _as_it_is

        def run() -> tuple[Tree, Callable[[Tree], Tree]]:
            value, back = compiled(*host)
            backward = enter(back)
            return finish(value, compiled), lambda seeds: as_typed(backward, lowered(seeds))

        def again(seeds: Tree) -> Tree:
            return self._gradient(device, (*host, lowered(seeds)), _raw)

        inputs = [t for v in host for t in tensors(v) if t.is_floating_point()]
        return call_joined(run, enter(again), inputs)

    @cached_property
    def _gradient(self) -> Joined:
        """The gradient, which runs the program once more. Raises RunError where that would do
        something else than the first time."""
        if not may_run_again(self._program.anf):
            raise RunError(RunsOnce(self._program.function.span, self._name))
        program = gradient_of(self._program)
        pullback = pullback_of(program)
        assert pullback is not None, "a gradient has the parameters and a result with floats"
        return Joined(self._name, program, pullback)


def _raw(value: Tree, _: Executable) -> Tree:
    return value


def _as_it_is(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function


def _entering(context: Context) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return the decorator that makes every call of a function run in a context."""
    return lambda function: lambda value: context.copy().run(function, value)
