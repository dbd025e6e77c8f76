"""Tiles: the innermost loops of products, which keep a block of sums in registers.

An *outer* tile multiplies numbers of one operand by vectors of the other; a *dot* tile multiplies
vectors of both, and sums their lanes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ..math import AVX512, NEON, Element, Target

Expression: TypeAlias = Callable[[int], str]
"""The text of an operand by its number."""


def registers(target: Target) -> int:
    """Return the number of vector registers."""
    return 32 if target in (AVX512, NEON) else 16


def tile_size(target: Target) -> tuple[int, int]:
    """Return the rows and vectors of an outer tile, such that its sums stay in registers."""
    return (6, 4) if registers(target) == 32 else (6, 2)


def dot_size(target: Target, columns: int) -> tuple[int, int]:
    """Return the rows and columns of dot tiles for so many columns: the sums, a vector of each row,
    and one of a column stay in registers."""
    across = -(-columns // -(-columns // _ACROSS))
    return min(_DOWN, (registers(target) - 1) // (across + 1)), across


_DOWN: Final = 5
_ACROSS: Final = 5
"""The most rows and columns of a dot tile."""


def sums(rows: int, columns: int) -> list[str]:
    """Return the names of the sums of a tile, row by row."""
    return [f"c{i}_{j}" for i in range(rows) for j in range(columns)]


def declared(vector: str, names: Sequence[str]) -> str:
    """Return the declaration of sums that begin as 0."""
    return f"{vector} {', '.join(f'{n} = {{0}}' for n in names)};"


def outer(shape: str, rows: int, vectors: int, number: Expression, vector: Expression) -> list[str]:
    """Return the lines that add products to the sums: those of the numbers of `rows` by vectors."""
    lines = [f"{shape} b{j} = {vector(j)};" for j in range(vectors)]
    for i in range(rows):
        lines.append(f"{shape} a{i} = relay_splat_{shape}({number(i)});")
        lines += [f"c{i}_{j} = relay_mad_{shape}(a{i}, b{j}, c{i}_{j});" for j in range(vectors)]
    return lines


def dot(shape: str, rows: int, columns: int, left: Expression, right: Expression) -> list[str]:
    """Return the lines that add products to the sums: those of vectors of `rows` by `columns`."""
    lines = [f"{shape} a{i} = {left(i)};" for i in range(rows)]
    for j in range(columns):
        lines.append(f"{shape} b{j} = {right(j)};")
        lines += [f"c{i}_{j} = relay_mad_{shape}(a{i}, b{j}, c{i}_{j});" for i in range(rows)]
    return lines


@final
@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of elements of an image: `lanes` of one row, or all places of `rows` short rows."""

    element: Element
    lanes: int
    rows: int = 1

    @property
    def shape(self) -> str:
        """The name of the type, as functions of vectors have it."""
        return f"{self.element.name}x{self.lanes}"

    def load(self, where: str, pitch: int, count: int | None = None) -> str:
        """Return the load of the first `count` elements, all by default. Rows lie `pitch` apart."""
        if self.rows > 1 and pitch * self.rows != self.lanes:
            return f"relay_load_rows_{self.rows}_{self.shape}({where}, {pitch})"
        return load(self.shape, where, self.lanes, self.lanes if count is None else count)

    def store(self, where: str, value: str, pitch: int, count: int | None = None) -> str:
        """Return the store of the first `count` elements."""
        if self.rows > 1 and pitch * self.rows != self.lanes:
            return f"relay_store_rows_{self.rows}_{self.shape}({where}, {pitch}, {value});"
        return store(self.shape, where, value, self.lanes, self.lanes if count is None else count)


def vector_of(element: Element, size: tuple[int, int], target: Target) -> Vector:
    """Return the vectors for images of a height and a width: of several rows where these fill one
    exactly, else such that few vectors make a row, and few lanes are left over."""
    height, width = size
    most = target.register_bytes // element.bytes
    for rows in (2, 4):
        if width * rows == most and height % rows == 0:
            return Vector(element, most, rows)
    candidates = [n for n in (most, most // 2, most // 4) if n * element.bytes >= 16]

    def cost(lanes: int) -> float:
        weight = _WIDEST if lanes * element.bytes == 64 else 1.0
        masked = 1.2 if lanes > width else 1.0
        return -(-width // lanes) * weight * masked

    return Vector(element, min(candidates, key=cost))


_WIDEST: Final = 1.1
"""How much longer an operation on 64 bytes takes than one on 32: some processors run slower."""


def load(shape: str, where: str, lanes: int, count: int) -> str:
    """Return the load of `count` elements."""
    if count == lanes:
        return f"relay_load_{shape}({where})"
    return f"relay_load_part_{shape}({where}, {count})"


def store(shape: str, where: str, value: str, lanes: int, count: int) -> str:
    """Return the store of the first `count` elements of a vector."""
    if count == lanes:
        return f"relay_store_{shape}({where}, {value});"
    return f"relay_store_part_{shape}({where}, {value}, {count});"


def indented(lines: Sequence[str], depth: int) -> str:
    """Return lines as text, so many steps to the right."""
    return "\n".join(f"{'    ' * depth}{line}" for line in lines)
