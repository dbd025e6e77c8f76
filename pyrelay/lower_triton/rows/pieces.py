"""Few long rows: several programs take a piece of each, and what they find is combined.

One kernel for each stage goes through its piece and keeps what it found in scratch, a number for
each row and piece; the next begins by combining what the pieces of the stage before found, in the
same order in every program, so the values never depend on which program was first. There are at
most `most_pieces` pieces, a whole number of `unit` elements each.
"""

from __future__ import annotations

from ...ir.bounds import maximum
from ...ir.dims import ONE, Dim
from ...ir.types import bool_
from ...kernels.calling import Layout, Scratch
from ...kernels.groups import Group
from ...kernels.plans.reductions import Reduction, part_dtypes, part_identities
from ...kernels.plans.rows import RowPlan
from ...kernels.plans.text import Text, behind, call, infix
from ..expressions import literal
from ..kernel import Config, Kernel, Tiles
from .combining import Row
from .configs import ALONG, ROWS, loop_configs, most_pieces, piece_unit, shortest_piece
from .text import RowText


def in_pieces(group: Group, plan: RowPlan, layout: Layout) -> tuple[Kernel, ...]:
    """Return the kernels of a pass over few long rows, one for each stage and a last one."""
    kernels = [_stage(group, plan, layout, stage) for stage in range(len(plan.stages))]
    return (*kernels, _last(group, plan, layout))


def _piece(plan: RowPlan) -> Dim:
    """Return how many elements of a row a piece has."""
    unit, least = piece_unit(plan.is_column), shortest_piece(plan.is_column)
    return maximum(Dim.of(least), unit * _ceiling(plan.reduced, _most(plan) * unit))


def _most(plan: RowPlan) -> int:
    return most_pieces(plan.kept, is_column=plan.is_column)


def _count(plan: RowPlan) -> Dim:
    """Return how many pieces a row has; one even if it is empty, for what is found of no
    element."""
    return maximum(ONE, _ceiling(plan.reduced, _piece(plan)))


def _ceiling(dim: Dim, by: Dim | int) -> Dim:
    return (dim + Dim.of(by) - 1) // by


def _stage(group: Group, plan: RowPlan, layout: Layout, stage: int) -> Kernel:
    """Return the kernel that makes the reductions of a stage for each piece."""
    reductions, stored = plan.reductions(stage), plan.stored_in(stage)
    roots = [*(r.operand for r in reductions), *(s.store.term for s in stored)]
    configs = _configs(plan, has_parts=stage > 0)
    text = RowText(group, plan, layout, configs, f"_{stage + 1}", roots)
    _begin(text, plan, stage)
    text.loop(reductions, stored, "first", "last")
    size = "last - first"
    for reduction, parts in text.row.parts(reductions, text.taken(Text(size)), size).items():
        for pointer, part in zip(_scratch(text, plan, reduction), parts, strict=True):
            at = _at(text, plan, "piece")
            mask = () if text.row_inside is None else (f"mask={text.row_inside}",)
            text.outer.line(str(call("tl.store", behind(pointer, at), part, *mask)))
    return text.finish((Tiles(_count(plan), None),))


def _last(group: Group, plan: RowPlan, layout: Layout) -> Kernel:
    """Return the kernel that stores what needs all reductions."""
    stage = len(plan.stages)
    stored, rows = plan.stored_in(stage), plan.stored_for_rows
    roots = [s.store.term for s in (*stored, *rows)]
    configs = _configs(plan, has_parts=True, has_loop=bool(stored))
    text = RowText(group, plan, layout, configs, f"_{stage + 1}", roots)
    if stored:
        _begin(text, plan, stage)
        text.loop((), stored, "first", "last")
        for output in rows:
            text.store(text.outer, output, "piece == 0")
        return text.finish((Tiles(_count(plan), None),))
    text.begin()
    _merge(text, plan, stage)
    for output in rows:
        text.store(text.outer, output)
    return text.finish()


def _begin(text: RowText, plan: RowPlan, stage: int) -> None:
    """Write which rows, and which piece of them, the program takes, and combine earlier stages."""
    text.begin()
    size = text.kernel.dims.size(_piece(plan), "piece_size")
    text.outer.line(f"piece = {text.program(1)}")
    text.outer.line(f"first = piece * {size.inside(7)}")
    text.outer.line(f"last = tl.minimum(first + {size}, {text.count})")
    _merge(text, plan, stage)


def _merge(text: RowText, plan: RowPlan, stage: int) -> None:
    """Combine what pieces found of all stages before one."""
    before = plan.stages[:stage]
    if not any(before):
        return
    text.kernel.constant("PIECES")
    shape = [ROWS, "PIECES"] if text.has_rows else ["PIECES"]
    row = Row(text.outer, "pieces", text.count, shape)
    count = text.kernel.dims.size(_count(plan), "piece_count")
    text.outer.line(f"pieces = {text.across('PIECES')}")
    inside = f"pieces < {count}"
    rows = "" if text.row_inside is None else f"{text.row_inside} & "
    text.outer.line(f"has_piece = {rows}({inside})" if rows else f"has_piece = {inside}")
    size = text.kernel.dims.size(_piece(plan), "piece_size")
    taken = f"tl.where(has_piece, tl.minimum({text.count} - pieces * {size}, {size}), 0)"
    for reductions in before:
        for reduction in reductions:
            row.hold(reduction, _loaded(text, plan, reduction))
        row.finish(reductions, taken)


def _loaded(text: RowText, plan: RowPlan, reduction: Reduction) -> list[str]:
    """Load what pieces found; return the names."""
    at = _at(text, plan, "pieces")
    names: list[str] = []
    for pointer, nothing in zip(
        _scratch(text, plan, reduction), part_identities(reduction), strict=True
    ):
        names.append(text.kernel.fresh(f"{reduction.reduced.var.name}_parts"))
        other = f"other={literal(nothing)}"
        load = call("tl.load", behind(pointer, at), "mask=has_piece", other)
        if reduction.dtype == bool_:
            load = infix(load, "!=", Text("0"))
        text.outer.line(f"{names[-1]} = {load}")
    return names


def _at(text: RowText, plan: RowPlan, piece: str) -> Text:
    """Return where what was found of a piece is kept."""
    if text.is_alone:
        return Text(piece)
    row = infix(Text("row"), "*", text.kernel.dims.size(_count(plan), "piece_count"))
    return infix(row, "+", Text(piece))


def _scratch(text: RowText, plan: RowPlan, reduction: Reduction) -> list[str]:
    """Return the addresses of what pieces found."""
    numbers = _numbers(plan)[reduction]
    shape = (plan.kept, _count(plan))
    name = reduction.reduced.var.name
    return [
        text.kernel.argument(Scratch(number, dtype, shape), f"{name}_of_pieces")
        for number, dtype in zip(numbers, part_dtypes(reduction), strict=True)
    ]


def _numbers(plan: RowPlan) -> dict[Reduction, tuple[int, ...]]:
    found: dict[Reduction, tuple[int, ...]] = {}
    number = 0
    for reduction in (r for stage in plan.stages for r in stage):
        count = len(part_dtypes(reduction))
        found[reduction] = tuple(range(number, number + count))
        number += count
    return found


def _configs(plan: RowPlan, *, has_parts: bool, has_loop: bool = True) -> tuple[Config, ...]:
    pieces = (("PIECES", _most(plan)),) if has_parts else ()
    found: dict[Config, None] = {}
    unit = piece_unit(plan.is_column)
    for config in loop_configs(plan.kept, plan.reduced, is_column=plan.is_column, divides=unit):
        constants = [c for c in config.constants if has_loop or c[0] != ALONG]
        found[Config((*constants, *pieces), config.num_warps, config.num_stages)] = None
    return tuple(found)
