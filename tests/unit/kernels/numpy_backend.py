"""A backend that runs kernels and regions with numpy, written against the public protocol alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import type_of
from pyrelay.ir.types import SizeType, TupleType
from pyrelay.kernels.backend import Backend, Device, KernelFunction, RegionFunction, Run
from pyrelay.kernels.calling import Form, Layout, NoKernel, Sizes
from pyrelay.kernels.fusion.segments import Segments
from pyrelay.kernels.groups import Kind
from pyrelay.kernels.plans.pointwise import FLAT, PlacesPlan, pointwise_plan
from pyrelay.kernels.plans.rows import KEPT, REDUCED, RowPlan, row_plan
from pyrelay.kernels.plans.terms import Term
from pyrelay.kernels.tape import CallStep, KernelStep, run_tape

WORDS = """add:add sub:subtract mul:multiply div:divide neg:negative abs:abs where:where eq:equal
    ne:not_equal lt:less le:less_equal gt:greater ge:greater_equal least:minimum most:maximum
    minimum:minimum maximum:maximum square_root:sqrt exp:exp log:log tanh:tanh sin:sin cos:cos"""
NAMES: Final = dict(word.split(":") for word in WORDS.split())
"""Operations of terms, and the functions of numpy that compute them."""
REDUCTIONS: Final = {"add": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "mul": np.prod}
READ: Final = ("const", "size", "load", "value", "result", "cast")


@final
class NumpyBackend(Backend):
    """Runs pointwise kernels, row kernels and whole regions on a CPU; leaves others to torch."""

    passes = (Segments(),)
    name = "numpy"
    description = "numpy runs its kernels"

    def __init__(self) -> None:
        self.ran: list[str] = []

    def unavailable(self, device: Device) -> str | None:
        return None if device.type == "cpu" else "numpy has no memory on other devices"

    def kernel(self, kernel: KernelFunction, device: Any, fallback: Run) -> Run:
        plan, types = plan_of(kernel), [type_of(p) for p in kernel.function.params]
        if isinstance(plan, str):
            return fallback

        def run(*operands: Any) -> Any:
            self.ran.append(kernel.name)
            made = Elements(plan, operands, Sizes(zip(types, operands, strict=True))).results()
            found = tuple(torch.from_numpy(made[number]) for number in sorted(made))
            return found if isinstance(type_of(kernel.function.body), TupleType) else found[0]

        return run

    def region(self, region: RegionFunction, device: Any, called: Any, fallback: Run) -> Run:
        tape = region.tape
        if tape is None:
            return fallback

        def run(*args: Any) -> Any:
            self.ran.append(region.name)
            sizes = Sizes(zip(tape.types, args, strict=False))
            slots = [torch.empty(sizes.value(s), dtype=torch.uint8) for s in tape.sizes]

            def placed(number: int, value: torch.Tensor) -> torch.Tensor:
                if number not in tape.slots:
                    return value
                room = slots[tape.slots[number]][: value.nbytes].view(value.dtype)
                return room.view(value.shape).copy_(value)  # a kernel could write there itself

            def call(step: KernelStep | CallStep, operands: list[Any]) -> Any:
                made = called(step.name)(*operands)
                if isinstance(step, CallStep):
                    return made
                if not step.is_tuple:
                    return placed(step.results[0], made)
                return tuple(map(placed, step.results, made))

            return run_tape(tape, args, call, sizes.value)

        return run

    def text(self, kernel: KernelFunction) -> str:
        plan = plan_of(kernel)
        if isinstance(plan, str):
            return f"# {kernel.name}: {plan}"
        needed = plan.supplier.terms.needed(plan.roots)
        return "\n".join(f"np.{NAMES.get(t.op, t.op)}({t.operands})" for t in needed)


def plan_of(kernel: KernelFunction) -> PlacesPlan | RowPlan | str:
    """Return the plan of a kernel, or why it is left to torch."""
    group, params = kernel.group, kernel.function.params
    if group.kind not in (Kind.POINTWISE, Kind.ROWS) or kernel.overwritten:
        return f"{group.kind.value} kernels are not supported"
    forms = [Form.NUMBER if isinstance(p.ty, SizeType) else Form.CONTIGUOUS for p in params]
    make = pointwise_plan if group.kind is Kind.POINTWISE else row_plan
    try:
        plan = make(group, Layout(tuple(forms)))
    except NoKernel as error:
        return str(error)
    missing = {t.op for t in plan.supplier.terms.needed(plan.roots)} - {*NAMES, *READ}
    missing |= {r.combine for r in group.reductions} - {*REDUCTIONS}
    return f"{sorted(missing)} are not supported" if missing else plan


@final
class Elements:
    """The terms of a plan at all places at once: a coordinate is an array of integers."""

    def __init__(self, plan: PlacesPlan | RowPlan, operands: Sequence[Any], sizes: Sizes) -> None:
        self.plan, self.terms, self.size = plan, plan.supplier.terms, sizes.value
        self.operands = [np.ascontiguousarray(o) for o in operands]
        self.values: dict[Term, Any] = {}
        if isinstance(plan, PlacesPlan):
            self.shape, names = [self.size(plan.count)], [FLAT]
        else:
            self.shape, names = [self.size(plan.kept), self.size(plan.reduced)], [KEPT, REDUCED]
        self.along = dict(zip(names, np.indices(self.shape), strict=True))

    def results(self) -> dict[int, Any]:
        made: dict[int, Any] = {}
        stages = () if isinstance(self.plan, PlacesPlan) else self.plan.stages
        for reduction in (r for stage in stages for r in stage):
            block = np.broadcast_to(self.value(reduction.operand), self.shape)
            combined = REDUCTIONS[reduction.reduced.combine](block, axis=1, keepdims=True)
            self.values[reduction.results[0]] = combined
        for store in self.plan.stores:
            shape = [self.size(d) for d in store.target.shape]
            out = made[store.target.result] = np.empty(shape, store.target.dtype.name)
            at, value = np.broadcast_arrays(self.place(store.at), self.value(store.term))
            out.reshape(-1)[at] = value
        return made

    def place(self, dim: Dim) -> Any:
        if dim.names().isdisjoint((*self.along, *self.terms.coordinates)):
            return self.size(dim)
        if dim.name in self.terms.coordinates:
            return self.value(self.terms.coordinates[dim.name][0])
        return dim.value(
            lambda part: self.along.get(part.name) if part == dim else self.place(part)
        )

    def value(self, term: Term) -> Any:
        for needed in sorted(self.terms.needed([term]), key=lambda t: t.number):
            if needed not in self.values:
                self.values[needed] = self.computed(needed)
        return self.values[term]

    def computed(self, term: Term) -> Any:
        dtype = None if term.dtype is None else term.dtype.name
        match term.op:
            case "const":
                return term.detail if dtype is None else np.asarray(term.detail, dtype)
            case "size":
                return np.asarray(self.place(term.detail), dtype)
            case "load":
                flat = self.operands[term.detail.operand].reshape(-1)
                return flat[np.clip(self.place(term.detail.offset), 0, flat.size - 1)].astype(dtype)
            case "value":
                return np.asarray(self.operands[term.detail], dtype)
            case "cast":
                return np.asarray(self.values[term.operands[0]], dtype)
            case op:
                return getattr(np, NAMES[op])(*(self.values[t] for t in term.operands))
