"""Common subexpressions: a pure binding whose value has been computed already is that value.

What is computed in front of a branch or a function is known inside it, not the other way round.
Two values are the same if they are the same operation, at the same type, of the same operands;
constants count by their bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.effect import effects_of
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Constructor,
    Expr,
    GlobalVar,
    TensorData,
    Tuple,
    TupleGet,
    Var,
)
from ...ir.nested import map_nested
from ...ir.op import Effect, Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps
from ...ir.verify import Stage
from ..base import Context, Pass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ir.module import Module

_Key: TypeAlias = tuple[Any, ...]


def share(module: Module) -> Module:
    """Return a module in A-normal form with equal pure values computed once; itself if all are."""
    return module.map_functions(lambda function: _Share(module).walked(function))


@final
@dataclass(frozen=True, slots=True)
class ShareSubexpressions(Pass):
    """Compute equal pure values once."""

    name: ClassVar = "cse"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return share(module)


@final
class _Share(Rewriter):
    """One walk over a global function, in order of evaluation."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._effects: Final = effects_of(module)
        self._known: Final[dict[_Key, Var]] = {}

    def body(self, expr: Expr) -> Steps[Expr]:
        """Return a body of its own scope: values computed in it are forgotten after it."""
        count = len(self._known)
        result = yield super().body(expr)
        while len(self._known) > count:
            self._known.popitem()
        return result

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, unless its value is known under another name."""
        value = yield self.node(binding.value, code)
        key = self._key(binding.value, value)
        if key in self._known:
            self.atoms[binding.var] = self._known[key]
            return
        if key is not None:
            self._known[key] = binding.var
        code.bind(binding.var, value)

    def _key(self, old: Expr, new: Expr) -> _Key | None:
        """Return the identity of a value; None if it must be computed where it stands."""
        match new:
            case TupleGet(value, index):
                return ("get", _operand(value), index)
            case Tuple(fields) if fields:
                return ("tuple", *map(_operand, fields))
            case Call(callee, args) if self._effects.of(old) is Effect.NONE:
                called = callee if isinstance(callee, Op) else _operand(callee)
                return (called, _static(new.attrs), new.type_args, new.ty, *map(_operand, args))
            case _:
                return None


def _operand(atom: Expr) -> _Key:
    match atom:
        case Constant(value):
            # `repr` distinguishes -0.0 from 0.0; the type, True from 1.
            bits = value if isinstance(value, TensorData) else repr(value)
            return ("constant", bits, atom.ty)
        case GlobalVar(name):
            return ("global", name, atom.ty)
        case Constructor(adt, name):
            return ("constructor", adt, name)
        case Tuple():
            return ("unit",)
        case _:
            return ("var", atom)


def _static(attrs: Mapping[str, Any]) -> _Key:
    return tuple((name, map_nested(value, _key)) for name, value in attrs.items())


def _key(value: Any) -> Any:
    # Equal numbers of different types are different attributes, and so are 0.0 and -0.0.
    return (type(value), repr(value)) if isinstance(value, int | float) else value
