"""A program under the implementations that apply where it is called.

Per view of the table there is one program, made when it is first needed: a registration that
cannot matter to the program changes nothing, and one that is taken back gives back the program of
before.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, final

from ... import dispatch
from ...config import may_compile
from ...diagnostics.catalogue.call import WouldCompile
from ...diagnostics.diagnostic import RunError
from ...dispatch.registry import REGISTRY, Table
from ...dispatch.state import STATE, State
from ...dispatch.view import Signature, View, calls_of, view_of

if TYPE_CHECKING:
    import torch

    from .program import Program

MOST_STATES: Final = 64
"""States that are known at a time; a program run under more of them finds its view anew."""


@final
class Views:
    """The programs that a program is under views."""

    def __init__(self, program: Program) -> None:
        self._program: Final = program
        self._programs: Final[dict[View, Program]] = {}
        self._known: tuple[Table, dict[tuple[State, torch.device], Program]] = REGISTRY.table, {}
        self._last: tuple[Table, State, torch.device, Program] | None = None

    def now(self, device: torch.device) -> Program:
        """Return the program for calls on a device under what is registered, included and excluded
        here. Raises RunError where that would compile, and compiling is not allowed."""
        table, state, last = REGISTRY.table, STATE.get(), self._last
        if last is not None and last[0] is table and last[1] is state and last[2] == device:
            return last[3]
        known = self._known
        if known[0] is not table or len(known[1]) >= MOST_STATES:
            # A new dictionary: another thread may still add to the old one.
            known = self._known = table, {}
        found = known[1].get((state, device))
        if found is None:
            key = dispatch.device(device.type)
            found = known[1][state, device] = self._under(view_of(table, state, key, self._calls))
        self._last = table, state, device, found
        return found

    def _under(self, view: View) -> Program:
        if not view:
            return self._program
        found = self._programs.get(view)
        if found is None:
            if not may_compile():
                why = "other implementations of its operators apply"
                raise RunError(WouldCompile(self._program.entry, why))
            found = self._programs[view] = self._program.under(view)
        return found

    @cached_property
    def _calls(self) -> tuple[Signature, ...]:
        """The calls of operators in the program, before it is simplified or after."""
        program = self._program
        found = (calls_of(m) for m in (program.anf, program.derived, program.simplified))
        return tuple(dict.fromkeys(call for calls in found for call in calls))
