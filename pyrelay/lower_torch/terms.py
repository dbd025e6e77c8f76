"""Expressions of generated code before they are text: terms, shared as the body that makes them
shares its values.

A body of an operator is run once, at compile time, on terms instead of tensors. A term used twice
must be computed once, so syntax is made only when the whole body is known (`Writer.write`): a
shared term then becomes an assignment of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol, TypeAlias, final

import torch

from ..dataclass import dataclass
from ..ir.dims import Dim
from ..ir.expr import Call
from ..ir.op import Op
from ..ir.traverse import dependencies_first
from ..ir.types import DType, SizeType, TensorType, Type, dtype_of, is_float
from .code import Code

Number: TypeAlias = int | float | bool
Make: TypeAlias = Callable[..., ast.expr]


class Form(Enum):
    """The representation of a value at run time, as far as the compiler knows it."""

    TENSOR = "a tensor"
    NUMBER = "a Python number"
    EITHER = "a Python number or a 0-d tensor"
    OTHER = "a tuple, string, function or other host value"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An expression: its inputs and how to write it from theirs. A leaf may be written twice.

    `literal` is the value where it is known: of a number, which takes the dtype of the operand it
    meets, or of a 0-d tensor made at compile time.
    """

    inputs: tuple[Term, ...]
    make: Make
    form: Form
    dtype: DType | None = None
    literal: Number | None = None
    parts: tuple[Term, ...] | None = None
    """The fields of a tuple, where they can be used without it."""

    @property
    def is_tensor(self) -> bool:
        """Return whether the value is surely a tensor."""
        return self.form is Form.TENSOR

    @property
    def known(self) -> Number | None:
        """The value of a Python number that is known."""
        return self.literal if self.form is Form.NUMBER else None

    @property
    def is_bool(self) -> bool:
        """Return whether the value is a bool or a tensor of bools."""
        return isinstance(self.literal, bool) or (
            self.dtype is not None and self.dtype.name == "bool"
        )


class EmitContext(Protocol):
    """The surroundings that the function under construction supplies to the calls in it."""

    @property
    def code(self) -> Code:
        """The maker of syntax nodes, at the place of the call."""
        ...

    def scalar(self, value: Number, dtype: DType) -> ast.expr:
        """Return a 0-d tensor that is made once, at compile time."""
        ...

    def body(self, op: Op) -> ast.expr:
        """Return the body of an operator's lowering, as a global name."""
        ...

    def kernel(self, name: str) -> ast.expr:
        """Return the function `aten::name`, as a global name."""
        ...

    def size(self, dim: Dim) -> ast.expr:
        """Return the integer value of a dim."""
        ...

    def bind(self, value: ast.expr, hint: str) -> ast.expr:
        """Assign a value to a new local name; return the name."""
        ...

    def bind_unless(
        self,
        value: ast.expr,
        hint: str,
        test: Callable[[ast.expr], ast.expr],
        instead: Callable[[ast.expr], ast.expr],
    ) -> ast.expr:
        """Assign a value to a new local name, and another to it if a test of it holds; return the
        name."""
        ...

    def is_in_range(self, call: Call) -> bool:
        """Return whether the integer that a call gives is known to fit into its dtype."""
        ...


def leaf(make: Callable[[], ast.expr], form: Form, dtype: DType | None = None) -> Term:
    """Return a term that costs nothing to write again, such as a name."""
    return Term((), make, form, dtype)


def form_of(ty: Type) -> Form:
    """Return the form that run-time values of a type have."""
    match ty:
        case SizeType():
            return Form.NUMBER
        case TensorType((), dtype) if not is_float(dtype):
            return Form.EITHER
        case TensorType():
            return Form.TENSOR
        case _:
            return Form.OTHER


def tuple_term(code: Code, fields: tuple[Term, ...]) -> Term:
    """Return a tuple of terms."""
    return Term(fields, lambda *nodes: code.tuple(nodes), Form.OTHER, parts=fields)


def part_of(code: Code, term: Term, index: int, ty: Type) -> Term:
    """Return a field, of a type, of a tuple."""

    def make(value: ast.expr) -> ast.expr:
        return code.item(value, code.literal(index))

    return Term((term,), make, form_of(ty), dtype_of(ty))


def write(term: Term, context: EmitContext, hint: str) -> ast.expr:
    """Return the syntax of a term, its shared parts assigned to names first."""
    uses = _uses(term)
    written: dict[Term, ast.expr] = {}

    def parts(current: Term) -> list[Term]:
        return [i for i in current.inputs if i.inputs]

    for current in dependencies_first(term, parts, written.__contains__):
        # A leaf is written anew: a syntax node has one place.
        node = current.make(*(written[i] if i.inputs else i.make() for i in current.inputs))
        if uses[current] > 1 and current.inputs:
            node = context.bind(node, hint)
        written[current] = node
    return written[term]


def _uses(term: Term) -> dict[Term, int]:
    uses: dict[Term, int] = {term: 1}
    pending = [term]
    while pending:
        for part in pending.pop().inputs:
            if part in uses:
                uses[part] += 1
            else:
                uses[part] = 1
                pending.append(part)
    return uses


def interior(terms: Sequence[Term]) -> int:
    """Return the number of terms that are not leaves."""
    seen: dict[Term, None] = {}
    pending = [t for t in terms if t.inputs]
    while pending:
        term = pending.pop()
        if term not in seen:
            seen[term] = None
            pending += (t for t in term.inputs if t.inputs)
    return len(seen)


DTYPE_NAMES: Final = {
    dtype: str(dtype).removeprefix("torch.")
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}
"""How torch's dtypes are written."""
