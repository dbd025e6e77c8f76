"""Sums of products by a library of matrix products, in the form of BLAS.

Its functions are passed to the text as pointers (`relay_use_library`). They see matrices column by
column (Dongarra et al., "A set of level 3 basic linear algebra subprograms", 1990), so the product
of two matrices that lie row by row is computed as that of their transposes, in turned order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Final, TypeAlias

from ...ir.dims import Dim
from ...ir.types import DType, float32, float64
from ...kernels.plans.terms import Term
from ...kernels.plans.text import Text
from ..kernel import LEAST
from .emit import BY_LIBRARY, KernelText
from .sides import Side

LIBRARY: Final = """\
#define RELAY_PRODUCT(element, gemm) \\
    KERNEL void (*gemm)( \\
        const char *, const char *, const int *, const int *, const int *, const element *, \\
        const element *, const int *, const element *, const int *, const element *, element *, \\
        const int *); \\
    /* Stores m rows of n sums of k products: row i of p, column j of q; or adds them to what is \\
       stored there. */ \\
    static void relay_product_##element( \\
        int64_t m, int64_t n, int64_t k, const element *p, int64_t p_step, int p_turned, \\
        const element *q, int64_t q_step, int q_turned, element *sums, int64_t sums_step, \\
        int adds \\
    ) { \\
        int rows = m, columns = n, count = k, step = sums_step; \\
        int p_apart = p_step > 0 ? p_step : 1, q_apart = q_step > 0 ? q_step : 1; \\
        element one = 1, before = adds; \\
        if (m > 0 && n > 0) \\
            gemm( \\
                q_turned ? "T" : "N", p_turned ? "T" : "N", &columns, &rows, &count, &one, \\
                q, &q_apart, p, &p_apart, &before, sums, &step); \\
    }

RELAY_PRODUCT(float, relay_sgemm)
RELAY_PRODUCT(double, relay_dgemm)

typedef struct { int64_t rows, columns; } relay_blocks;

/* Divides sums of `work` vectors into blocks: few, since a library copies its operands for each of
   them, but one for each thread, and small enough to be in the cache until something is made of
   them. */
static relay_blocks relay_blocks_of(
    relay_run *run, int64_t batch, int64_t rows, int64_t columns, int64_t work
) {
    int64_t threads = run->parallel ? run->most_threads() : 1;
    if (threads > work / RELAY_LEAST) threads = work / RELAY_LEAST;
    if (batch * rows * columns == 0) return (relay_blocks){1, 1};
    int64_t high = rows, wide = columns, count = batch;
    while ((count < threads || high * wide > 262144) && high * wide > 2048) {
        if (high >= wide) high = (high / 2 + 7) / 8 * 8;
        else wide = (wide / 2 + 15) / 16 * 16;
        count = batch * ((rows + high - 1) / high) * ((columns + wide - 1) / wide);
    }
    return (relay_blocks){high, wide};
}
"""

USE_LIBRARY: Final = """\
void relay_use_library(void *single, void *twice) {
    *(void **)&relay_sgemm = single;
    *(void **)&relay_dgemm = twice;
}
"""

BLOCKS: Final = "blocks"
"""The name of the blocks into which a library's work is divided."""

_Pair: TypeAlias = tuple[Side, Side]


def are_few(sizes: Sequence[Dim]) -> bool:
    """Return whether sums of these sizes surely have too few products for a library."""
    count = reduce(mul, sizes).constant
    return count is not None and count < LEAST


def are_added(term: Term, results: Sequence[Term]) -> bool:
    """Return whether a term is the sum of results, of each once."""
    pending, found = [term], []
    while pending:
        part = pending.pop()
        if part in results:
            found.append(part)
        elif part.op == "add":
            pending += part.operands
        else:
            return False
    return len(found) == len(set(found)) == len(results)


def can_call(dtype: DType, pairs: Sequence[tuple[Side, Side | None]]) -> bool:
    """Return whether a library can compute sums: the elements of each operand lie one behind the
    other along one of its dims."""
    return dtype in (float32, float64) and all(
        side is not None and _lies_along(side) for pair in pairs for side in pair
    )


def _lies_along(side: Side) -> bool:
    one, other = side.own.text, side.along.text
    return (one == "1" and other != "0") or (other == "1" and one != "0")


def chosen(library: str, own: str) -> str:
    """Return the expression of what depends on the route."""
    return f"({BY_LIBRARY} ? {library} : {own})"


def blocks_of(
    code: KernelText, shape: tuple[Dim, Dim, Dim], summed: Sequence[Dim]
) -> tuple[str, str, str]:
    """Return the type, the name and the value of the blocks into which a library's work is
    divided."""
    batch, rows, columns = map(code.dims.size, shape)
    total = " + ".join(str(code.dims.size(s)) for s in summed)
    inner = f"{batch.inside(7)} * {rows.inside(7)} * {columns.inside(7)}"
    work = f"{inner} * ({total}) / {code.lanes}"
    value = f"relay_blocks_of(run, {batch}, {rows}, {columns}, {work})"
    return "relay_blocks", BLOCKS, value


def product(element: str, batch: str, pair: _Pair, count: Text, to: str) -> str:
    """Return the call that stores the sums of `rows` rows from `first` on, and of as many columns
    from `column` on as `columns`. `to` is where, and whether they are added to what is there."""
    p, q = pair
    operands = f"{p.at(batch, 'first')}, {_step(p)}, {_flag(p.along)}"
    operands = f"{operands}, {q.at(batch, 'column')}, {_step(q)}, {_flag(q.own)}"
    return f"relay_product_{element}(rows, columns, {count}, {operands}, {to});"


def _step(side: Side) -> Text:
    """Return how far rows or columns of an operand lie apart."""
    return side.own if side.along.text == "1" else side.along


def _flag(step: Text) -> str:
    """Return whether the library has to turn an operand that does not lie along this step."""
    return "0" if step.text == "1" else "1"
