"""Recursion of any depth on a flat stack.

A deep unit exists twice: a plain function with a budget of depth as its last parameter, and the
same code as a generator, its *steps*, where a call is `yield steps` and a call in tail position
`return steps`. The plain form goes over to `run_steps` when the budget is spent. No threads, no
changed recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, Final, TypeAlias, final

from ...config import current
from ...operators.host.failing import DepthExceeded

DEPTH: Final = 100
"""How many plain calls nest before the trampoline takes over."""

STEPS: Final = "__steps"
"""The suffix of the names of functions that make steps."""

HostSteps: TypeAlias = Generator[Any, Any, Any]


def run_steps(steps: HostSteps) -> Any:
    """Drive steps to their result; steps that end in steps are a tail call and take their place."""
    stack: list[HostSteps] = []
    value: Any = None
    limit = current().max_depth - DEPTH
    while True:
        try:
            callee = steps.send(value)
        except StopIteration as stop:
            value = stop.value
            if type(value) is GeneratorType:
                steps, value = value, None
            elif stack:
                steps = stack.pop()
            else:
                return value
        else:
            stack.append(steps)
            if len(stack) > limit:
                _stop(stack, callee)
            steps, value = callee, None


def _stop(stack: list[HostSteps], callee: HostSteps) -> None:
    """Stop the program at the call that waits innermost, for `callee`. Raises DepthExceeded."""
    assert isinstance(callee, GeneratorType)
    error = DepthExceeded(callee.gi_code.co_name.removesuffix(STEPS), current().max_depth)
    innermost = stack[-1]
    stack.clear()  # the traceback would keep all of them
    innermost.throw(error)


@final
class DeepFunction:
    """A function value that may recurse: both of its forms, and callable like any function."""

    __slots__ = ("plain", "steps")

    def __init__(self, plain: Callable[..., Any] | None, steps: Callable[..., HostSteps]) -> None:
        self.plain: Final = (lambda *args: run_steps(steps(*args[:-1]))) if plain is None else plain
        self.steps: Final = steps

    def __call__(self, *args: Any) -> Any:
        """Return the result of the function, from a fresh budget of depth."""
        return self.plain(*args, DEPTH)


def deep_function(function: Callable[..., Any]) -> DeepFunction:
    """Return any callable as one that deep code can call."""
    if isinstance(function, DeepFunction):
        return function

    def plain(*args: Any) -> Any:
        return function(*args[:-1])

    def steps(*args: Any) -> HostSteps:
        return function(*args)
        yield  # makes this a generator

    return DeepFunction(plain, steps)
