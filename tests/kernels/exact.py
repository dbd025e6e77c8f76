"""What a kernel function gives in float64, and how far a kernel in float32 may be from it.

Arithmetic in float32 gives `(a op b) * (1 + d)`, with |d| at most half of `eps` = 2**-23, and
functions of floats come within `FUNCTION` times `eps` (`lower_triton/math.py` states their bounds).
A sum of n numbers in any order is `sum(x[i] * (1 + d[i]))`, with |d[i]| below `sqrt(n) * eps` but
for a vanishing share of cases (Higham and Mary, "A new approach to probabilistic rounding error
analysis", 2019). A cast to a half type has that type's `eps`. So the function is run in float64
several times, once as it stands, and otherwise with every operation's result moved at random by as
much as it may be wrong ("Monte Carlo arithmetic", Parker 1997): an element may differ from the
exact one by `SPREAD` times as much as any of the moved ones does, and by its own storing, one unit
in the last place of its dtype, since Triton's interpreter cuts off bits of bfloat16.

What float32 holds exactly is not moved, so moved data, small integers and comparisons are exact.
Integers and bools are equal, unless moving changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final, final

import torch

from pyrelay.ir.declaration.lowering import Contraction, Pointwise, Scatter, inside
from pyrelay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGet, type_of
from pyrelay.ir.op import Op
from pyrelay.ir.types import DType, TensorType, Type, float64, is_float
from pyrelay.kernels.calling import Sizes
from pyrelay.kernels.reading import straight_line
from pyrelay.lower_torch.apply import apply_op
from pyrelay.lower_torch.constants import is_host_number, tensor_constant, torch_dtype

CPU: Final = torch.device("cpu")
EPS: Final = torch.finfo(torch.float32).eps
TINY: Final = torch.finfo(torch.float32).tiny
RANGE: Final = torch.finfo(torch.float32).max

RUNS: Final = 6
SPREAD: Final = 8
FUNCTION: Final = 5
ARITHMETIC: Final = frozenset(("add", "subtract", "multiply", "divide", "square", "sqrt"))
SUMS: Final = frozenset(
    ("sum", "mean", "prod", "avg_pool2d", "avg_pool2d_backward", "max_pool2d_backward")
)
OF_BITS: Final = frozenset(
    ("random_key", "fold_in", "random_split", "normal", "uniform", "bernoulli", "dropout")
)
"""Operators whose random numbers depend on the dtype; they are run in the program's own."""


def has_float64(function: Function) -> bool:
    """Return whether a function computes in float64 somewhere: then nothing is more exact."""
    types: list[Type] = [type_of(p) for p in function.params]
    bindings, _ = straight_line(function.body)
    types += [type_of(b.var) for b in bindings]
    return any(isinstance(t, TensorType) and t.dtype == float64 for t in types)


def assert_close(
    function: Function, operands: Sequence[Any], found: Any, after: Sequence[Any]
) -> None:
    """Compare what the kernels of a function gave, and its operands afterwards, with float64."""
    exact, *moved = (_Run(function, operands, seed).values() for seed in (None, *range(RUNS)))
    results = (*(found if isinstance(found, tuple) else (found,)), *after)
    assert len(results) == len(exact)
    for number, result in enumerate(results):
        if isinstance(result, torch.Tensor):
            first, *others = (torch.as_tensor(run[number]) for run in (exact, *moved))
            _compare(number, result, first, torch.stack(others))


def _compare(number: int, found: torch.Tensor, exact: torch.Tensor, others: torch.Tensor) -> None:
    """Compare one result."""
    if not found.dtype.is_floating_point:
        exact, others = exact.to(found.dtype), others.to(found.dtype)
        wrong = (found != exact) & (others == exact).all(0)
        assert not wrong.any(), f"result {number}: {found[wrong]} is not {exact[wrong]}"
        return
    kind = torch.finfo(found.dtype)
    given = found.double()
    settled = (others.isnan() == exact.isnan()).all(0) & (others.isinf() == exact.isinf()).all(0)
    slack = SPREAD * (others - exact).abs().amax(0) + (kind.eps + FUNCTION * EPS) * exact.abs()
    slack = slack.nan_to_num(0, 0, 0) + max(kind.tiny, 4 * TINY)
    stored = exact.to(found.dtype).double()  # beyond the range of the dtype is infinity
    same = (given == stored) | (given.isnan() & exact.isnan())
    near = ((given - exact).abs() <= slack) | (
        given.isinf() & ((exact.abs() + slack) >= kind.max) & (given.sign() == exact.sign())
    )
    wrong = settled & ~same & ~near
    assert not wrong.any(), (
        f"result {number}: {int(wrong.sum())} of {wrong.numel()} elements, such as\n"
        f"{given[wrong][:4].tolist()} for\n{exact[wrong][:4].tolist()}, which may differ by\n"
        f"{slack[wrong][:4].tolist()}"
    )


@final
class _Run:
    """One run in float64: as it stands, or with what is computed moved at random."""

    def __init__(self, function: Function, operands: Sequence[Any], seed: int | None) -> None:
        self._random: Final = None if seed is None else torch.Generator().manual_seed(seed)
        self._operands: Final = [_wide(o, is_own=True) for o in operands]
        types = [type_of(p) for p in function.params]
        sizes = Sizes(zip(types, operands, strict=True))
        known: dict[Expr, Any] = dict(zip(function.params, self._operands, strict=True))
        bindings, end = straight_line(function.body)
        for binding in bindings:
            known[binding.var] = self._value(binding.value, known, sizes)
        result = self._value(end, known, sizes)
        self._results: Final = result if isinstance(result, tuple) else (result,)

    def values(self) -> tuple[Any, ...]:
        """Return the results, and the operands afterwards."""
        return (*self._results, *self._operands)

    def _value(self, expr: Expr, known: dict[Expr, Any], sizes: Sizes) -> Any:
        match expr:
            case Call(callee=Op() as op):
                return self._applied(op, expr, [_atom(a, known) for a in expr.args], sizes)
            case other:
                return _atom(other, known)

    def _applied(self, op: Op, call: Call, given: list[Any], sizes: Sizes) -> Any:
        if op.name in OF_BITS:
            types = [type_of(a) for a in call.args]
            given = [_narrow(v, t) for v, t in zip(given, types, strict=True)]
            return _wide(apply_op(op, call, given, sizes.value, CPU))
        call = replace(call, attrs={n: _wide_attr(v) for n, v in call.attrs.items()})
        if self._random is None:
            return _ranged(_wide(apply_op(op, call, given, sizes.value, CPU)))
        count = _count(op, given)
        if count > 1:
            given = [self._moved(v, EPS * sqrt(count), None) for v in given]
        found = _ranged(_wide(apply_op(op, call, given, sizes.value, CPU)))
        if isinstance(found, tuple):
            return tuple(self._moved(f, EPS) for f in found)
        return self._moved(found, *_error(op, call, count))

    def _moved(self, value: Any, by: float, held: torch.dtype | None = torch.float32) -> Any:
        """Return a value with each element multiplied by 1, give or take `by`, unless a dtype holds
        it exactly."""
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
            return value
        assert self._random is not None
        random = torch.rand(value.shape, generator=self._random, dtype=torch.float64) * 2 - 1
        moved = value + random * (value.abs() * by + TINY)
        # Terms of a sum are moved though they are held, since partial sums are not; integers are.
        exact = value == (value.round() if held is None else value.to(held).double())
        return torch.where(exact, value, moved)


def _error(op: Op, call: Call, count: float) -> tuple[float, torch.dtype]:
    """Return how wrong the result of an operation may be, as a share of it, unless a dtype holds
    it."""
    ty = type_of(call)
    if op.name == "cast" and isinstance(ty, TensorType) and is_float(ty.dtype):
        assert isinstance(ty.dtype, DType)
        dtype = torch_dtype(ty.dtype)
        return torch.finfo(dtype).eps, dtype
    if isinstance(inside(op.lowering), Pointwise) and op.name not in ARITHMETIC:
        return FUNCTION * EPS, torch.float32
    return EPS * sqrt(count), torch.float32


def _count(op: Op, operands: Sequence[Any]) -> float:
    """Return at most how many terms are added up, or multiplied, for an element."""
    if not isinstance(inside(op.lowering), Contraction | Scatter) and op.name not in SUMS:
        return 1
    return max([1, *(o.numel() for o in operands if isinstance(o, torch.Tensor))])


def _atom(expr: Expr, known: dict[Expr, Any]) -> Any:
    match expr:
        case Tuple(fields):
            return tuple(_atom(f, known) for f in fields)
        case TupleGet(value, index):
            return _atom(value, known)[index]
        case Constant():
            return expr.value if is_host_number(expr) else _wide(tensor_constant(expr, CPU))
        case _:
            return known[expr]


def _wide(value: Any, is_own: bool = False) -> Any:
    """Return floats as float64; with `is_own` in new storage."""
    if isinstance(value, tuple):
        return tuple(_wide(v) for v in value)
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    wide = value.double() if value.dtype.is_floating_point else value
    return wide.clone() if is_own else wide


def _narrow(value: Any, ty: Type) -> Any:
    if isinstance(value, torch.Tensor) and isinstance(ty, TensorType):
        assert isinstance(ty.dtype, DType)
        return value.to(torch_dtype(ty.dtype))
    return value


def _wide_attr(value: Any) -> Any:
    return float64 if isinstance(value, DType) and is_float(value) else value


def _ranged(value: Any) -> Any:
    """Return what is beyond the range of float32 as infinity."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
        return value
    return torch.where(value.abs() > RANGE, value * torch.inf, value)
