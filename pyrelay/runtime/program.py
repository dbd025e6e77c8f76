"""A program from its translated IR to a host function: the stages, each computed once.

The typed stage is all that `check` and `show` need; the rest runs when the program is first called.
"""

from __future__ import annotations

import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, final

from ..config import current
from ..dispatch.registry import REGISTRY
from ..dispatch.view import NOTHING, View
from ..ir.expr import Function
from ..ir.module import Module
from ..ir.ops.debugging import is_debugged
from ..ir.printer import to_text
from ..ir.types import FnType
from ..ir.verify import Stage, verify, verify_conversions
from ..passes.absurd import without_absurd
from ..passes.ahead import compute_ahead
from ..passes.blame import blame_callers
from ..passes.calls import combine_calls
from ..passes.cells import cells_to_values
from ..passes.commute import pool_first
from ..passes.dce import remove_dead
from ..passes.deferred import defer_sums
from ..passes.effects import is_closed, with_flavours
from ..passes.factored import factored, gives_fresh
from ..passes.grad import expand_transforms
from ..passes.in_place import update_in_place
from ..passes.infer import infer, unreachable_cases
from ..passes.inline_joins import inline_joins
from ..passes.normal_form import to_anf
from ..passes.pieces import join_pieces
from ..passes.regions.pipeline import Regions, make_regions
from ..passes.regions.segments import in_segments
from ..passes.simplify import simplify
from ..passes.solved_sizes import with_solved_sizes
from .evaluator import evaluate
from .host import CompiledProgram, Instead, compile_module
from .kernels import Kernels
from .lowerings import EvaluatedProgram, Executable, Lowering, lowering_on
from .methods import may_choose
from .representation import NO_DATA, UserData
from .views import Views

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from ..diagnostics.diagnostic import Diagnostic

_LOGGER: Final = logging.getLogger("pyrelay.passes")


@final
class Program:
    """One entry function with everything it reaches, at every stage."""

    def __init__(
        self,
        translated: Module,
        entry: str,
        data: UserData = NO_DATA,
        view: View = NOTHING,
        gradients: tuple[int, ...] | None = None,
    ) -> None:
        """`data` tells of the user's own data types, `view` which operators are dispatched.
        `gradients` leads to the gradients in the result that may be pairs of factors; None if none
        may."""
        self.view: Final = view
        self.translated: Final = translated
        self.data: Final = data
        self.entry: Final = entry
        self.gradients: Final = gradients
        self._compiled: Final[dict[tuple[torch.device, str, bool, bool, bool], Executable]] = {}
        self._views: Final = Views(self)

    @classmethod
    def of_typed(
        cls, typed: Module, entry: str, data: UserData = NO_DATA, view: View = NOTHING
    ) -> Self:
        """Give the program of a module that has been checked before."""
        program = cls(typed, entry, data, view)
        program.__dict__["typed"] = typed
        return program

    @cached_property
    def typed(self) -> Module:
        """The program after inference. Raises CheckError."""
        return self._step(Stage.TYPED, self.translated, infer)

    @cached_property
    def is_debugged(self) -> bool:
        """Whether it is compiled for a debugger: to calls of torch, line by line."""
        return is_debugged(self.typed)

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is right in the program but cannot be meant."""
        return tuple(problem.diagnostic() for problem in unreachable_cases(self.typed))

    @cached_property
    def anf(self) -> Module:
        """The program in A-normal form."""
        return self._step(
            Stage.ANF, self.typed, lambda m: blame_callers(with_solved_sizes(to_anf(m)))
        )

    @cached_property
    def derived(self) -> Module:
        """The program with its transforms expanded. Raises CheckError."""
        return self._step(Stage.DERIVED, self.anf, self._derive)

    @cached_property
    def simplified(self) -> Module:
        """The program that is compiled to calls of operators, as few as there can be; for a
        debugger it stays as it is written."""
        if self.is_debugged:
            return self._step(Stage.FLAVOURED, self._as_written, with_flavours)
        joined = join_pieces(self.anf, self.view.concerns)
        if joined is self.anf:
            derived = self.derived
        else:
            derived = self._step(Stage.DERIVED, joined, self._derive)
        module = self._step(Stage.FLAVOURED, derived, self._simplify_for_calls)
        if self.gradients is None:
            return module
        path = self.gradients

        def run(module: Module) -> Module:
            return with_flavours(factored(module, self.entry, path))

        return self._step(Stage.FLAVOURED, module, run)

    @cached_property
    def _as_written(self) -> Module:
        """The program with its transforms expanded, and each function one frame of a debugger."""
        joined = inline_joins(with_flavours(self.anf))
        return self._step(Stage.DERIVED, joined, self._derive)

    @cached_property
    def _whole(self) -> Module:
        """The program that is cut into kernels, which computes nothing for the sake of calls."""
        return self._step(Stage.FLAVOURED, self.derived, self._simplify)

    @cached_property
    def cut(self) -> Regions:
        """The program with its tensor code in kernels and regions, and why it is so cut; a kernel
        makes products of factors itself."""
        return make_regions(self._whole, self.entry)

    @cached_property
    def regions(self) -> Module:
        """The program with its tensor code in kernels and regions."""
        return self._step(Stage.REGIONS, self._whole, lambda _: self.cut.module)

    def _derive(self, module: Module) -> Module:
        plain = cells_to_values(without_absurd(module))
        pooled = pool_first(plain, self.view.concerns)
        # What a fallback does for an operator it does for those that keep more as well.
        derived = expand_transforms(pooled, self.entry, self.view.names)
        return without_absurd(derived)  # gradients make functions over every type that they meet

    def _simplify(self, module: Module) -> Module:
        fixed = self.view.concerns
        return with_flavours(update_in_place(simplify(module, self.entry, _fold, fixed), fixed))

    def _simplify_for_calls(self, module: Module) -> Module:
        fixed = self.view.concerns
        simple = simplify(module, self.entry, _fold, fixed)
        batched = defer_sums(compute_ahead(simple, fixed), fixed)
        if batched is not simple:
            simple = simplify(batched, self.entry, _fold, fixed)
        combined = remove_dead(combine_calls(simple, fixed), self.entry)
        return with_flavours(update_in_place(combined, fixed))

    def _step(self, stage: Stage, module: Module, run: Callable[[Module], Module]) -> Module:
        """Give the next stage: timed, and verified and written to a file where options say so."""
        started = time.perf_counter()
        made = run(module)
        _LOGGER.info(
            "%s of %s took %.1f ms", stage.value, self.entry, 1e3 * (time.perf_counter() - started)
        )
        options = current()
        if options.verify:
            verify(made, stage)
            verify_conversions(module, made)
        if options.dump_dir is not None:
            options.dump_dir.mkdir(parents=True, exist_ok=True)
            file = options.dump_dir / f"{self.entry}.{stage.value}.relay"
            file.write_text(to_text(made), encoding="utf-8")
        return made

    @property
    def function(self) -> Function:
        """The typed entry."""
        return self.typed.functions[self.entry]

    @property
    def type(self) -> FnType:
        """The type of the entry."""
        ty = self.function.ty
        assert isinstance(ty, FnType)
        return ty

    def compiled(self, device: torch.device) -> Executable:
        """Give what runs the program on a device, under the implementations of operators that
        apply now; made at first use."""
        return self.now(device).as_it_is(device)

    def now(self, device: torch.device) -> Program:
        """Give the program under the implementations that apply to calls on a device now."""
        return self._views.now(device) if REGISTRY.table.registrations else self

    def as_it_is(self, device: torch.device) -> Executable:
        """Give what runs the program on a device under the view of this program."""
        options = current()
        key = (device, options.lowering, may_choose(), options.tf32, options.graphs)
        known = self._compiled.get(key)
        if known is None:
            known = self._compiled[key] = self._compile(device)
        return known

    def under(self, view: View) -> Program:
        """Give the program in which the operators of a view are dispatched."""
        program = Program.of_typed(self.typed, self.entry, self.data, view)
        program.__dict__["anf"] = self.anf
        return program

    def _compile(self, device: torch.device) -> Executable:
        lowering = lowering_on(device, self.function.span)
        match Lowering.TORCH if self.is_debugged else lowering:
            case Lowering.TORCH:
                return self.as_torch(device)
            case Lowering.EVALUATOR:
                return EvaluatedProgram(lambda args: self._evaluate(args, device))
            case Lowering.REGIONS if self.view == NOTHING:
                return self._cut(self.regions, device, None)
            case Lowering.TRITON if self.view == NOTHING:
                return self._launched(device)
            case Lowering.REGIONS | Lowering.TRITON:
                return self.as_torch(device)  # what is dispatched is called, one by one

    def as_torch(self, device: torch.device) -> CompiledProgram:
        """Give the program as host code that calls torch."""
        data = self.data.representations
        fresh = self._gives_fresh
        module, entry = self.simplified, self.entry
        is_bare = fresh and is_closed(module, entry)
        return compile_module(
            module, entry, device, data, self.view, gives_fresh=fresh, is_bare=is_bare
        )

    @cached_property
    def _gives_fresh(self) -> bool:
        """Whether all results are tensors that operators in the program make; what is registered
        for an operator may give anything."""
        return not self.view and gives_fresh(self.simplified.functions[self.entry])

    def _launched(self, device: torch.device) -> CompiledProgram:
        """Give the program as host code that calls kernels."""
        cut = self.cut
        launched = in_segments(cut)
        module = self._step(Stage.REGIONS, self.regions, lambda _: launched.module)
        return self._cut(module, device, Kernels(cut, launched, device))

    def _cut(
        self, module: Module, device: torch.device, instead: Instead | None
    ) -> CompiledProgram:
        """Give the program as host code that calls kernel and region functions, or what is called
        instead of them."""
        data = self.data.representations
        return compile_module(module, self.entry, device, data, instead=instead)

    def interpret(self, args: Sequence[Any], device: torch.device) -> Any:
        """Give the value that the reference evaluator finds."""
        return self.now(device)._evaluate(args, device)  # noqa: SLF001  it is a program, too

    def _evaluate(self, args: Sequence[Any], device: torch.device) -> Any:
        known = self.data.representations
        return evaluate(self.derived, self.entry, args, device, representations=known)


def _fold(module: Module, entry: str) -> Any:
    """Give the value of a closed function, for constant folding."""
    return evaluate(module, entry, (), dispatched=False)
