"""Exits: the code for the value in tail position, and for a jump to an enclosing loop.

An exit says where the result of the code being written goes: returned, assigned to a name, or out
of a loop. Loops in tail position of loops form a chain; Python's `break` and `continue` reach only
the innermost, so a chain notes in a flag which of its loops goes on.
"""

from __future__ import annotations

from typing import TypeAlias, final

from ...dataclass import dataclass
from ...kernels.function_plan import Planned


@final
@dataclass(frozen=True, slots=True)
class Returned:
    """The value is returned from the Python function."""


@final
@dataclass(frozen=True, slots=True)
class Assigned:
    """The value is assigned to a name, or dropped if there is none; then code goes on below."""

    name: str | None


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """The value is returned to the function with the loops around: `(-1, value)`, or
    `(number, *arguments)` for a jump to the loop of that number."""

    outer: InLoop


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A `while True` under construction for a function in place, or for jumps of a unit.

    `exit` is where the value of the loop goes. `flag` names the variable that has, after this loop
    is left, the number of the loop of the chain that goes on; None where only the next one out can.
    """

    planned: Planned
    number: int
    params: tuple[str, ...]
    exit: Exit
    flag: str | None


@final
@dataclass(frozen=True, slots=True)
class InLoop:
    """The value leaves the loop, and goes where the loop's own exit says."""

    loop: Loop


Exit: TypeAlias = Returned | Assigned | Outcome | InLoop


def final_exit(exit_: Exit) -> Returned | Assigned | Outcome:
    """Return where a value goes once it is out of all loops."""
    while isinstance(exit_, InLoop):
        exit_ = exit_.loop.exit
    return exit_


def chain(exit_: Exit) -> list[Loop]:
    """Return the loops that a value leaves on its way, innermost first, in all Python functions."""
    found: list[Loop] = []
    while True:
        match exit_:
            case InLoop(loop):
                found.append(loop)
                exit_ = loop.exit
            case Outcome(outer):
                exit_ = outer
            case _:
                return found


def is_last(exit_: Exit) -> bool:
    """Return whether no code runs below: the exit leaves the place where it stands."""
    return not isinstance(exit_, Assigned)
