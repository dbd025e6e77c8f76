"""Sums of products by a library of matrix products, in the form of BLAS.

Its functions are passed to the text as pointers (`relay_use_library`). They see matrices column by
column (Dongarra et al., "A set of level 3 basic linear algebra subprograms", 1990), so the product
of two matrices that lie row by row is computed as that of their transposes, in turned order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ...ir.dims import Dim
from ...ir.types import DType, float32, float64
from ...kernels.plans.text import Text
from ..math import element_of
from .emit import BY_LIBRARY, KernelText
from .sides import Side

LIBRARY: Final = """\
#define RELAY_PRODUCT(element, gemm) \\
    KERNEL void (*gemm)( \\
        const char *, const char *, const int *, const int *, const int *, const element *, \\
        const element *, const int *, const element *, const int *, const element *, element *, \\
        const int *); \\
    /* Stores m rows of n sums of k products: row i of p, column j of q. */ \\
    static void relay_product_##element( \\
        int64_t m, int64_t n, int64_t k, const element *p, int64_t p_step, int p_turned, \\
        const element *q, int64_t q_step, int q_turned, element *sums \\
    ) { \\
        int rows = m, columns = n, count = k, step = n; \\
        int p_apart = p_step > 0 ? p_step : 1, q_apart = q_step > 0 ? q_step : 1; \\
        element one = 1, zero = 0; \\
        if (m > 0 && n > 0) \\
            gemm( \\
                q_turned ? "T" : "N", p_turned ? "T" : "N", &columns, &rows, &count, &one, \\
                q, &q_apart, p, &p_apart, &zero, sums, &step); \\
    }

RELAY_PRODUCT(float, relay_sgemm)
RELAY_PRODUCT(double, relay_dgemm)
"""

USE_LIBRARY: Final = """\
void relay_use_library(void *single, void *twice) {
    *(void **)&relay_sgemm = single;
    *(void **)&relay_dgemm = twice;
}
"""

_Pair: TypeAlias = tuple[Side, Side]
_Sizes: TypeAlias = tuple[Dim, Dim, Dim, Dim]


def can_call(dtype: DType, pairs: Sequence[tuple[Side, Side | None]]) -> bool:
    """Return whether a library can compute sums: the elements of each operand lie one behind the
    other along one of its dims."""
    return dtype in (float32, float64) and all(
        side is not None and _lies_along(side) for pair in pairs for side in pair
    )


def _lies_along(side: Side) -> bool:
    one, other = side.own.text, side.along.text
    return (one == "1" and other != "0") or (other == "1" and one != "0")


def product_loop(
    code: KernelText,
    dtype: DType,
    batch: str,
    pair: _Pair,
    sizes: _Sizes,
    room: str,
) -> list[str]:
    """Return the lines that store the sums of the rows from `begin` to `end` in `room`, for each
    place of the batch; `sizes` are those of the batch, rows, columns, and of what is summed."""
    p, q = pair
    count, rows, columns, summed = map(code.dims.size, sizes)
    function = f"relay_product_{element_of(dtype).c}"
    p_at = f"{p.pointer} + {batch} * {p.batch.inside(7)} + begin * {p.own.inside(7)}"
    q_at = f"{q.pointer} + {batch} * {q.batch.inside(7)}"
    to = f"{room} + ({batch} * {rows.inside(7)} + begin) * {columns.inside(7)}"
    given = ", ".join(
        (
            *("end - begin", str(columns), str(summed)),
            *(p_at, str(_step(p)), _flag(p.along)),
            *(q_at, str(_step(q)), _flag(q.own)),
            to,
        )
    )
    return [
        f"for (int64_t {batch} = 0; {batch} < {count}; {batch}++) {{",
        f"    {function}({given});",
        "}",
    ]


def found_sums(
    element: str, places: tuple[str, str, str], width: int, own: Sequence[str], rooms: Sequence[str]
) -> list[str]:
    """Return the lines that find the sums of a tile: its own, which are rows of `width`, or those
    of the library. `places` are the place in the batch, and how many rows and columns there are."""
    batch, rows, columns = places
    at = f"({batch} * {rows} + first) * {columns} + column"
    lines = [f"const int64_t pitch = {BY_LIBRARY} ? {columns} : {width};"]
    for name, room in zip(own, rooms, strict=True):
        lines.append(f"const {element} *{name}_from = {BY_LIBRARY} ? {room} + {at} : {name};")
    return lines


def _step(side: Side) -> Text:
    """Return how far rows or columns of an operand lie apart."""
    return side.own if side.along.text == "1" else side.along


def _flag(step: Text) -> str:
    """Return whether the library has to turn an operand that does not lie along this step."""
    return "0" if step.text == "1" else "1"
