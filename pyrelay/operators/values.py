"""The operators that the arithmetic and the methods of values under construction emit."""

from __future__ import annotations

from .builder import Value, ValueOperators
from .host.sizes import size
from .matrices.products import matmul
from .primitive import arithmetic, compare, create, reduce, view

Value.operators = ValueOperators(
    add=arithmetic.add,
    subtract=arithmetic.subtract,
    multiply=arithmetic.multiply,
    divide=arithmetic.divide,
    power=arithmetic.power,
    negative=arithmetic.negative,
    matmul=matmul,
    sum_=reduce.sum_,
    sum_to=reduce.sum_to,
    reshape=view.reshape,
    expand=view.expand,
    transpose=view.transpose,
    unsqueeze=view.unsqueeze,
    cast=compare.cast,
    full=create.full,
    size=size,
)
