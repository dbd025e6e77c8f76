"""The report on fusion for the user: what was fused, what was not, and why.

One table for each region, and one for what stands outside of any: a line for each kernel and each
call of torch, with the bytes it reads and writes, the operations it takes and the user's lines it
computes. Sizes that only the run knows stay names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final, final

from ..dataclass import dataclass
from ..diagnostics.source import BUILTIN, Span
from ..diagnostics.wording import counted
from ..ir.dims import ZERO, Dim, sum_of
from ..ir.expr import Call, Expr, GlobalVar, type_of
from ..ir.module import Module
from ..ir.op import Host, Op, View
from ..ir.traverse import post_order
from ..ir.types import UNIT, TensorType, TupleType, Type
from .cost import cost_of, size_of
from .groups import Group
from .memory import plan_memory
from .outlined import Outlined, SeparatedRemark, StoredRemark, outlined_of
from .reading import straight_line


@final
@dataclass(frozen=True, slots=True)
class CostEntry:
    """One kernel, or one call of torch: what it moves and computes; `operations` is None where
    torch alone knows."""

    name: str
    kind: str
    read: Dim
    written: Dim
    operations: Dim | None
    place: str


@final
@dataclass(frozen=True, slots=True)
class StepTable:
    """The steps of a region, or of a function outside of its regions."""

    name: str
    steps: tuple[CostEntry, ...]
    is_region: bool


def tables(module: Module) -> tuple[StepTable, ...]:
    """Return the steps of all functions, in the order of the module."""
    outlined = outlined_of(module)
    known = {name: _of_kernel(name, group) for name, group in outlined.groups.items()}
    found: list[StepTable] = []
    for name, function in module.functions.items():
        if name in known:
            continue
        steps = tuple(_steps(function.body, known))
        if steps:
            found.append(StepTable(name, steps, name in outlined.regions))
    return tuple(found)


def explain(module: Module, entry: str) -> str:
    """Return the kernels and regions of a program as text, and the remarks of fusion."""
    found, outlined = tables(module), outlined_of(module)
    lines = [_summary(entry, outlined, found)]
    for table in found:
        lines += ["", table.name if table.is_region else f"{table.name}, outside of regions"]
        lines += _laid_out([_HEAD, *(_row(s) for s in table.steps), _row(_total(table.steps))])
        if table.is_region:
            plan = plan_memory(module.functions[table.name], outlined.groups)
            if plan.slots:
                lines.append(
                    f"  memory: at most {_bytes(plan.bytes)} for {len(plan.slots)} values in "
                    f"{len(plan.sizes)} slots; {_bytes(plan.unshared)} without a plan"
                )
    stored = [
        (
            f"`{r.var.name}`",
            "" if r.user.ty == UNIT else f"for `{r.user.name}`:",
            r.why,
            _place((r.user.span,)),
        )
        for r in outlined.remarks
        if isinstance(r, StoredRemark)
    ]
    if stored:
        lines += ["", "stored between kernels"]
        lines += _laid_out(list(dict.fromkeys(stored)))
    apart = [
        (f"`{r.second.name}`", f"reads `{r.shared.name}` as `{r.first.name}` does:", r.why)
        for r in outlined.remarks
        if isinstance(r, SeparatedRemark)
    ]
    if apart:
        lines += ["", "products that read the same in several kernels"]
        lines += _laid_out(list(dict.fromkeys(apart)))
    return "\n".join(lines) + "\n"


def explain_calls(module: Module, entry: str) -> str:
    """Return the calls of operators in a program that has no kernels, function by function."""
    steps = {n: tuple(_steps(f.body, {})) for n, f in module.functions.items()}
    found = {n: s for n, s in steps.items() if s}
    count = sum(map(len, found.values()))
    lines = [f"{entry}: {counted(count, 'call')} of operators in the code"]
    for name, calls in found.items():
        rows = [_HEAD, *(_row(s) for s in calls)]
        lines += ["", name, *_laid_out([(r[0], r[2], r[3], r[5]) for r in rows])]
    return "\n".join(lines) + "\n"


def summary_of(group: Group) -> str:
    """Return a kernel's kind and cost in one line."""
    step = _of_kernel("", group)
    row = _row(step)
    return f"{step.kind}; reads {row[2]}, writes {row[3]}, {row[4]} operations"


_TORCH: Final = "torch"
_HEAD: Final = ("step", "kind", "reads", "writes", "operations", "lines")


def _of_kernel(name: str, group: Group) -> CostEntry:
    cost = cost_of(group)
    spans = (b.value.span for b in straight_line(group.function.body)[0])
    place = _place(spans)
    return CostEntry(name, group.kind.value, cost.read_bytes, cost.written, cost.operations, place)


def _steps(body: Expr, kernels: Mapping[str, CostEntry]) -> Iterable[CostEntry]:
    """Return the kernels and calls of torch in a body, those of its branches included."""
    for node in post_order(body):
        match node:
            case Call(GlobalVar(name)) if name in kernels:
                yield kernels[name]
            case Call(Op(lowering=View() | Host())):
                pass
            case Call(Op() as op, args) if any(_is_tensor(type_of(a)) for a in (node, *args)):
                read = sum_of(_size(type_of(a)) for a in args)
                written = _size(type_of(node))
                yield CostEntry(op.name, _TORCH, read, written, None, _place((node.span,)))
            case _:
                pass


def _is_tensor(ty: Type) -> bool:
    match ty:
        case TensorType(shape):
            return bool(shape)
        case TupleType(fields):
            return any(map(_is_tensor, fields))
        case _:
            return False


def _size(ty: Type) -> Dim:
    match ty:
        case TensorType():
            return size_of(ty)
        case TupleType(fields):
            return sum_of(map(_size, fields))
        case _:
            return ZERO


def _total(steps: Sequence[CostEntry]) -> CostEntry:
    operations = sum_of(s.operations for s in steps if s.operations is not None)
    read, written = sum_of(s.read for s in steps), sum_of(s.written for s in steps)
    return CostEntry("total", "", read, written, operations, "")


def _row(step: CostEntry) -> tuple[str, ...]:
    operations = "-" if step.operations is None else str(step.operations)
    columns = (step.name, step.kind, _bytes(step.read), _bytes(step.written), operations)
    return (*columns, step.place)


def _bytes(count: Dim) -> str:
    return f"{count} B"


def _place(spans: Iterable[Span]) -> str:
    """Return the lines of spans, file by file."""
    found: dict[str, set[int]] = {}
    for span in spans:
        if span.file is not BUILTIN:
            found.setdefault(PurePath(span.file.name).name, set()).add(span.line)
    return "; ".join(f"{name}:{', '.join(map(str, sorted(n)))}" for name, n in found.items())


def _laid_out(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows as lines with their columns under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _summary(entry: str, outlined: Outlined, found: Sequence[StepTable]) -> str:
    steps = [s for t in found for s in t.steps]
    calls = sum(s.kind == _TORCH for s in steps)
    kernels = counted(len(outlined.kernels), "kernel")
    inside = counted(len(outlined.regions), "region")
    return f"{entry}: {kernels}, {counted(calls, 'call')} of torch, {inside}"
