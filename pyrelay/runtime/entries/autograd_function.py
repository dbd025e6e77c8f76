"""Programs as nodes of torch's graph, differentiable to any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...diagnostics.catalogue.run import RunsOnce
from ...diagnostics.diagnostic import RunError
from ...ir.types import TensorType, TupleType, Type, is_float
from ...kernels.backend import Backend
from ..border.autograd import Node, Tree, as_typed, call_joined, joined_directly, tensors
from ..border.fast_flatten import paths
from ..compile.derived import differentiable, gradient_of, may_run_again, pullback_of
from ..compile.lowerings import Executable
from ..host import CompiledProgram
from ..values.structure import lowered

if TYPE_CHECKING:
    import torch

    from ..compile.program import Program

Finish: TypeAlias = Callable[[Tree, Executable], Tree]
"""Return a program's result as its caller receives it."""

NodeMaker: TypeAlias = Callable[..., Any]
"""From host values to the result of a program as a node of torch's graph."""

Wanted: TypeAlias = tuple[int, ...]
"""The places of the parameters in which a program is differentiated."""


@final
class Joined:
    """A program whose calls take part in torch's autograd, by way of its pullback."""

    def __init__(self, name: str, program: Program) -> None:
        self._name: Final = name
        self._program: Final = program
        self._differentiable: Final = differentiable(program)
        self._pullbacks: Final[dict[Wanted, Program]] = {}

    def __call__(self, device: torch.device, host: Sequence[Any], finish: Finish) -> Tree:
        """Run the program as one node of torch's graph. Raises RunError."""
        inputs = [[t for t in tensors(v) if t.is_floating_point()] for v in host]
        wanted = self._wanted(inputs)
        compiled = self._pullback(wanted).compiled(device)
        # Torch calls the backward from threads of its own, where the modes of here are not.
        enter = _entering(copy_context()) if compiled.is_dispatched else _as_it_is

        def run() -> tuple[Tree, Callable[[Tree], Tree]]:
            value, back = compiled(*host)
            backward = enter(back)
            return finish(value, compiled), lambda seeds: as_typed(backward, lowered(seeds))

        again = partial(self._again, device, host, wanted)
        moved = [i in wanted for i, found in enumerate(inputs) for _ in found]
        return call_joined(run, enter(again), list(chain.from_iterable(inputs)), moved)

    def node_maker(
        self, device: torch.device, host: Sequence[Any], *, is_settled: bool
    ) -> NodeMaker | None:
        """Return the function that makes the nodes of calls with values of which the same require
        gradients as of these; one that looks no more at them, where there is one, if it
        `is_settled`. None where a value that carries gradients is no tensor and no tuple
        of tensors, and where the result is anything but one tensor that the program makes."""
        result, types = self._program.type.result, self._program.type.params
        if not _is_float(result) or not all(_has_floats(types[i]) for i in self._differentiable):
            return None
        inputs = [tensors(v) if i in self._differentiable else [] for i, v in enumerate(host)]
        wanted = self._wanted(inputs)
        pullback = self._pullback(wanted)
        compiled = pullback.compiled(device)
        if not isinstance(compiled, CompiledProgram) or compiled.is_dispatched:
            return None
        lowering = pullback.lowering
        backend = lowering if isinstance(lowering, Backend) else None
        function = compiled.settled(host) if is_settled else compiled.function
        if function is None or not pullback.gives_fresh((0,), backend):
            return None
        read = [path for i in self._differentiable for path in paths(types[i], f"v[{i}]")]
        cotangents = [
            path if i in wanted else None
            for i in self._differentiable
            for path in paths(types[i], f"v[{wanted.index(i)}]" if i in wanted else "")
        ]
        again = partial(self._again, device)
        node = Node(function, compiled.located, wanted, again, read, cotangents)
        return partial(joined_directly, node)

    def _wanted(self, inputs: Sequence[Sequence[torch.Tensor]]) -> Wanted:
        """Return the parameters in which a call is differentiated: those with a tensor that
        requires a gradient. `inputs` are the floats in each argument."""
        places = self._differentiable
        return tuple(i for i in places if any(t.requires_grad for t in inputs[i])) or places

    def _pullback(self, wanted: Wanted) -> Program:
        found = self._pullbacks.get(wanted)
        if found is None:
            found = self._pullbacks[wanted] = pullback_of(self._program, wanted)
        return found

    def _again(
        self, device: torch.device, host: Sequence[Any], wanted: Wanted, seeds: Tree
    ) -> Tree:
        """Return the cotangents that the pullback gives, as part of torch's graph."""
        found = self._gradient(device, (*host, lowered(seeds)), _raw)
        return tuple(c for i, c in zip(self._differentiable, found, strict=True) if i in wanted)

    @cached_property
    def _gradient(self) -> Joined:
        """The gradient, which runs the program once more. Raises RunError where that would do
        something else than the first time."""
        if not may_run_again(self._program.anf):
            raise RunError(RunsOnce(self._program.function.span, self._name))
        return Joined(self._name, gradient_of(self._program))


def _is_float(ty: Type) -> bool:
    return isinstance(ty, TensorType) and is_float(ty.dtype)


def _has_floats(ty: Type) -> bool:
    """Return whether a type is that of a tensor of floats, or of a tuple of such."""
    pending = [ty]
    while pending:
        match pending.pop():
            case TupleType(fields):
                pending += fields
            case leaf:
                if not _is_float(leaf):
                    return False
    return True


def _raw(value: Tree, _: Executable) -> Tree:
    return value


def _as_it_is(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function


def _entering(context: Context) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return the decorator that makes every call of a function run in a context."""
    return lambda function: lambda value: context.copy().run(function, value)
