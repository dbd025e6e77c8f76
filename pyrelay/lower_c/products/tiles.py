"""Tiles: the innermost loops of products, which keep a block of sums in registers.

An *outer* tile multiplies numbers of one operand by vectors of the other; a *dot* tile multiplies
vectors of both, and sums their lanes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..math import AVX512, NEON, Target

Expression: TypeAlias = Callable[[int], str]
"""The text of an operand by its number."""


def registers(target: Target) -> int:
    """Return the number of vector registers."""
    return 32 if target in (AVX512, NEON) else 16


def tile_size(target: Target) -> tuple[int, int]:
    """Return the rows and vectors of an outer tile, such that its sums stay in registers."""
    return (6, 4) if registers(target) == 32 else (6, 2)


def dot_size(target: Target) -> tuple[int, int]:
    """Return the rows and columns of a dot tile."""
    return (4, 5) if registers(target) == 32 else (2, 5)


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
