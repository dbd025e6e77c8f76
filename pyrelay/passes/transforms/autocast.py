"""Mixed precision: the functions that `autocast` makes.

Types stay: every float32 value of the program is float32 still. A product rounds its operands to
the narrow dtype, and what it gives is widened again, so parameters, data, loops and calls need no
change, and the derivative of a rounded operand is float32 like the operand. An operator that only
moves or selects elements commutes with widening, and goes to the narrow side; then nothing reads
what was widened in between. Which operator does which is declared by its `precision`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never, final

from ...analysis.call_graph import reachable
from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, type_of
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Op, Precision
from ...ir.rewriter import Rewriter
from ...ir.transforms import narrow_name
from ...ir.traverse import Steps, refresh, rewrite
from ...ir.types import DTYPES, DType, TensorType, TupleType, Type, float32
from ...operators.builder import Builder, Value
from ..deriving.deriver import Wanted, plain_name

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...diagnostics.source import Span
    from ...ir.block_builder import BlockBuilder
    from ..deriving.workspace import Workspace


@final
@dataclass(frozen=True, slots=True)
class _Key:
    """A function and the dtype of its products."""

    function: str
    dtype: DType


@final
class Autocast:
    """Defines the functions that multiply in a narrow dtype."""

    def __init__(self, workspace: Workspace) -> None:
        self.problems: list[Problem] = []
        self._store: Final = workspace.store
        self._unruled: Final = workspace.unruled
        self._names: Final[dict[_Key, str]] = {}

    def obstacles(self, wanted: Wanted, place: Span) -> Iterator[Problem]:
        """Return no obstacles: there are none."""
        yield from ()

    def name(self, wanted: Wanted) -> str:
        """Return the name of the function that a transform stands for, defined once, with all that
        it calls."""
        dtype = DTYPES[narrow_name(wanted.policy)]
        reached = [
            _Key(name, dtype) for name in reachable(self._store.functions, (wanted.function,))
        ]
        new = [key for key in reached if key not in self._names]
        for key in new:
            self._names[key] = self._store.function_name(f"{key.function}_{dtype.name}")
        for key in new:
            self._define(key)
        return self._names[_Key(wanted.function, dtype)]

    def _define(self, key: _Key) -> None:
        name = self._names[key]
        if key.function in self._unruled:
            self._unruled[name] = self._unruled[key.function]

        def renamed(node: Expr) -> Expr:
            if not isinstance(node, GlobalVar):
                return node
            return replace(node, name=self._names.get(_Key(node.name, key.dtype), node.name))

        copied = rewrite(refresh(self._store.functions[key.function]), renamed)
        assert isinstance(copied, Function)
        span = copied.span.derived(f"`{plain_name(key.function)}` in {key.dtype.name}")
        module = Module(self._store.functions, self._store.adts)
        walked = _Narrowing(module, key.dtype).walked(copied)
        self._store.functions[name] = replace(walked, name=name, span=span)


@final
class _Narrowing(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, dtype: DType) -> None:
        super().__init__(module)
        self._dtype: Final = dtype
        self._names: Final = Names()
        self._narrow: Final[dict[Expr, Expr]] = {}
        """For a variable that was widened the value that it was widened from."""

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding; that of a call on narrow operands is its result, widened."""
        value = yield self.node(binding.value, code)
        if not isinstance(value, Call) or not self._is_narrow(value):
            code.bind(binding.var, value)
            return
        builder = Builder(value.span, self._names)
        args = tuple(self._narrowed(builder.value(arg)).atom for arg in value.args)
        call = replace(value, args=args, ty=_in_dtype(type_of(value), float32, self._dtype))
        narrow = builder.bind(call, binding.var.name)
        _changed(narrow, self._dtype, float32)
        *before, wide = builder.bindings
        for inner in before:
            code.bind(inner.var, inner.value)
        self._narrow[binding.var] = narrow.atom
        code.bind(binding.var, wide.value)

    def _is_narrow(self, call: Call) -> bool:
        """Return whether a call is computed in the narrow dtype."""
        op = call.callee
        if not isinstance(op, Op):
            return False
        wide = [arg for arg in call.args if _in_dtype(type_of(arg), float32, self._dtype) != arg.ty]
        match op.precision:
            case Precision.NARROW:
                return bool(wide)
            case Precision.ANY:
                is_tensor = isinstance(call.ty, TensorType) and call.ty.dtype == float32
                return is_tensor and bool(wide) and all(arg in self._narrow for arg in wide)
            case Precision.GIVEN | Precision.OF_LOWERING:
                return False
            case _:
                assert_never(op.precision)

    def _narrowed(self, value: Value) -> Value:
        """Return an operand in the narrow dtype."""
        known = self._narrow.get(value.atom)
        if known is not None:
            return value.builder.value(known)
        return _changed(value, float32, self._dtype)


def _in_dtype(ty: Type, old: DType, new: DType) -> Type:
    """Return a type with the tensors of one dtype in another."""
    match ty:
        case TensorType(dtype=dtype) if dtype == old:
            return replace(ty, dtype=new)
        case TupleType(fields):
            return TupleType(tuple(_in_dtype(field, old, new) for field in fields))
        case _:
            return ty


def _changed(value: Value, old: DType, new: DType) -> Value:
    """Return a value with the tensors of one dtype cast to another."""
    match value.ty:
        case TensorType(dtype=dtype) if dtype == old:
            return value.cast(new)
        case TupleType(fields) if _in_dtype(value.ty, old, new) != value.ty:
            return value.builder.tuple([_changed(value[i], old, new) for i in range(len(fields))])
        case _:
            return value
