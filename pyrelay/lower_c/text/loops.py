"""The dims of a pass as few nested loops: neighbouring dims are one where every place allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import ONE, Dim, product
from ...kernels.plans.code import Axis
from ...kernels.plans.terms import Term, Terms
from ...kernels.plans.text import Text, infix
from .block import Block
from .emit import KernelText


def dims_of(terms: Terms, roots: Iterable[Term]) -> list[Dim]:
    """Return the dims that some terms, and what they need, compute."""
    return [dim for term in terms.needed(roots) for dim in terms.dims(term)]


def merged(names: Sequence[str], sizes: Sequence[Dim], dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the sizes of dims after neighbours have become one: those that are in `dims` only as
    the number that they have together, row by row. `names` are their coordinates."""
    if not sizes:
        return ()
    found, lowest = [sizes[-1]], names[-1]
    for name, size in zip(reversed(names[:-1]), reversed(sizes[:-1]), strict=True):
        apart = {lowest: Dim.of(lowest) - Dim.of(name) * found[-1]}
        together = [dim.rename(apart) for dim in dims]
        if any(name in dim.names() for dim in together):
            found.append(size)
            lowest = name
        else:
            found[-1] = size * found[-1]
            dims = together
    return tuple(reversed(found))


def grouped(sizes: tuple[Dim, ...], lanes: int) -> tuple[Dim, ...]:
    """Return the sizes of dims after rows that are known to be so short that several fit in a
    vector have become one, if there are certainly so many and they are not empty."""
    *outer, height, width = (ONE, ONE, *sizes)
    if not width.constant:
        return sizes
    for rows in range(lanes // width.constant, 1, -1):
        count = height.exact_quotient(Dim.of(rows))
        if count is not None:
            found = (*outer, count, width * rows)
            return tuple(d for d in found if d != ONE)
    return sizes


@final
@dataclass(frozen=True, slots=True)
class Nest:
    """Nested loops over coordinates with names in C: all but the last are recovered from the number
    of a row, and the lanes of vectors lie along the last."""

    coordinates: tuple[str, ...]
    sizes: tuple[Dim, ...]
    names: tuple[str, ...]
    inner: tuple[Axis, ...] = ()
    """The axes of loops inside."""

    def axes(self, kernel: KernelText) -> list[Axis]:
        """Return the axes of blocks inside."""
        *rows, last = [*self.names] or [""]
        texts = [*rows, kernel.place(last)]
        own = [Axis(c, t, None) for c, t in zip(self.coordinates, texts, strict=False)]
        return [*own, *self.inner]

    def levels(self, kernel: KernelText, axes: Sequence[Axis], depth: int) -> list[Block]:
        """Return the block around all loops, and those in the loops over the first `depth`
        coordinates."""
        found = [Block(kernel, axes, None)]
        for coordinate in self.coordinates[:depth]:
            found.append(Block(kernel, axes, None, found[-1], coordinate))
        return found

    def write(
        self,
        kernel: KernelText,
        inside: Callable[[Block], None],
        *,
        is_shared: bool = False,
        by_row: bool = False,
    ) -> list[str]:
        """Return the lines of a loop over the places from `begin` to `end`; `inside` writes what is
        done for each vector of places. With `is_shared` these bound the places along the last dim,
        and the loop goes over all rows; with `by_row` they bound the rows."""
        axes = self.axes(kernel)
        levels = self.levels(kernel, axes, len(self.coordinates) - 1)
        outer, *rows = levels
        lane = self.coordinates[-1] if self.coordinates else None
        inner = Block(kernel, axes, lane, levels[-1], lane)
        inside(inner)
        if lane is None:
            return [
                *outer.lines,
                "for (int64_t n = 1; begin < end; begin++) {",
                *indented(inner.lines),
                "}",
            ]
        index = self.names[-1]
        if not rows:
            return [*outer.lines, *kernel.over(index, "begin", "end", inner.lines)]
        size = kernel.dims.size(self.sizes[-1])
        if by_row:
            body = [*self.recovered(kernel, "row"), *(line for row in rows for line in row.lines)]
            body += kernel.over(index, "0", str(size), inner.lines)
            loop = "for (int64_t row = begin; row < end; row++) {"
            return [*outer.lines, loop, *indented(body), "}"]
        if is_shared:
            count = kernel.dims.size(product(self.sizes[:-1]))
            head = self.recovered(kernel, "row")
            row_lines = [line for row in rows for line in row.lines]
            over = kernel.over(index, "begin", "end", inner.lines)
            loop = f"for (int64_t row = 0; row < {count}; row++) {{"
            return [*outer.lines, loop, *indented([*head, *row_lines, *over]), "}"]
        lines = [
            *outer.lines,
            "for (int64_t at = begin, row, first, last; at < end; at += last - first) {",
            f"    row = at / {size.inside(7)}, first = at % {size.inside(7)};",
            f"    last = relay_least_i64({size}, first + end - at);",
        ]
        lines += indented(self.recovered(kernel, "row"))
        lines += indented(line for row in rows for line in row.lines)
        return [*lines, *indented(kernel.over(index, "first", "last", inner.lines)), "}"]

    def recovered(self, kernel: KernelText, row: str) -> list[str]:
        """Return the lines that compute the coordinates but the last from the number of a row."""
        return recovered(kernel, row, self.names[:-1], self.sizes[:-1])


def recovered(
    kernel: KernelText, number: str, names: Sequence[str], sizes: Sequence[Dim]
) -> list[str]:
    """Return the lines that compute coordinates from the number that a place has, row by row."""
    lines: list[str] = []
    behind = ONE
    for place in reversed(range(len(names))):
        text = Text(number)
        if behind != ONE:
            text = infix(text, "/", kernel.dims.size(behind))
        if place:
            text = infix(text, "%", kernel.dims.size(sizes[place]))
        lines.insert(0, f"const int64_t {names[place]} = {text};")
        behind = behind * sizes[place]
    return lines


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines one level further in."""
    return [f"    {line}" for line in lines]


def either(condition: str, lines: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return lines for where a condition holds, and others for where it does not."""
    return [f"if ({condition}) {{", *indented(lines), "} else {", *indented(others), "}"]


LETTERS: Final = ("i", "j", "k", "l", "m")


def named(kernel: KernelText, count: int) -> tuple[str, ...]:
    """Return names for so many coordinates."""
    wishes = LETTERS if count <= len(LETTERS) else [f"i{n}" for n in range(count)]
    return tuple(kernel.fresh(wish) for wish in wishes[:count])
