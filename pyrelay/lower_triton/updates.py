"""Kernels of several passes over places that share only the launch, such as the updates of all
parameters of a model: the programs are dealt out to the outputs, one after another."""

from __future__ import annotations

from typing import Final

from ..ir.dims import product
from ..ir.expr import type_of
from ..kernels.groups import Group
from ..kernels.reading import shape_of
from .block import Block
from .emit import KernelText
from .indexing import Axis
from .kernel import Layout, Lowered, Parts, Tiles
from .pointwise import CONFIGS
from .supplier import TermSupplier
from .terms import Access, Term, Terms

_INDENT: Final = "    "


def lower_updates(group: Group, layout: Layout) -> Lowered:
    """Return the kernel of a group whose outputs have different numbers of elements."""
    supplier = TermSupplier(group.function, layout, {})
    places = supplier.places
    shapes = [shape_of(type_of(o.value)) for o in group.outputs]
    counts = [product(s) for s in shapes]
    flats = [places.coordinate(f"i{n}", count) for n, count in enumerate(counts)]
    indices = [
        places.relocated((flat,), (count,), shape)
        for flat, count, shape in zip(flats, counts, shapes, strict=True)
    ]
    terms = [
        supplier.element(o.value, index) for o, index in zip(group.outputs, indices, strict=True)
    ]
    kernel = KernelText(group.function, supplier.terms, places)
    kernel.take("program", "begin", "inside", *(f"i{n}" for n in range(len(flats))))
    kernel.count(terms)
    kernel.constant("BLOCK")
    block = Block(kernel, [], [])
    wide = ".to(tl.int64)" if layout.is_wide else ""
    block.line(f"program = tl.program_id(0){wide}")
    parts: list[str] = []
    for number, (output, index, term) in enumerate(zip(group.outputs, indices, terms, strict=True)):
        name, size = f"i{number}", kernel.dims.size(counts[number])
        axis = Axis(name, name, "inside")
        part = Block(kernel, [axis], ["BLOCK"], block, name)
        if output.overwrites is not None:
            for load in _loads(kernel.terms, term, output.overwrites):
                part.keep(load)  # other programs must not read what this one stores
        pointer, at = supplier.target(kernel, output, index)
        part.line(f"{name} = (program - begin) * BLOCK + tl.arange(0, BLOCK)")
        part.line(f"inside = {name} < {size}")
        part.store(pointer, at, term)
        begin = "begin = 0" if number == 0 else "begin = end"
        parts += [begin, f"end = begin + tl.cdiv({size}, BLOCK)"]
        parts += ["if (program >= begin) & (program < end):", *(_INDENT + p for p in part.lines)]
    for line in parts:
        block.line(line)
    grid = ((Parts(tuple(Tiles(c, "BLOCK") for c in counts)),),)
    return Lowered((kernel.finish(block.lines, grid, CONFIGS),))


def _loads(terms: Terms, term: Term, operand: int) -> list[Term]:
    """Return the loads of an operand that a term is computed from."""
    seen, pending = {term: None}, [term]
    while pending:
        for before in terms.before(pending.pop()):
            if before not in seen:
                seen[before] = None
                pending.append(before)
    accesses = [t for t in seen if isinstance(t.detail, Access)]
    return [t for t in accesses if t.detail.operand == operand and not terms.dims(t)[0].names()]
