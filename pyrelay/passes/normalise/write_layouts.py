"""Layouts are written out as permutations, and types state the order in memory as their shape.

`Tensor[(N, C, H, W), float32, NHWC]` becomes `Tensor[(N, H, W, C), float32]`. Operators of images
read such a tensor through a view with the dims in their places, and their result is seen in the
other order again; a conversion is a copy. So transforms, kernels and backends know no layouts: the
derivative of a permutation is one, and a library reads the order in memory off the strides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final, final

from ...analysis.retype import Retyping
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim, product
from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, Tuple, TupleGet, Var, type_of
from ...ir.layouts import PLAIN, in_layout, layout_of
from ...ir.module import AdtDef, ConstructorDef, Module
from ...ir.names import Names
from ...ir.op import Layouts, Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, nodes_of, rewrite
from ...ir.types import FnType, TensorType, TupleType, Type, as_arguments, map_type
from ...ir.verify import Stage
from ...operators.composite.layouts import to_layout
from ...operators.composite.norm import batch_norm
from ...operators.primitive.view import permute, permute_copy, reshape
from ..base import Context, Pass


@final
@dataclass(frozen=True, slots=True)
class WriteLayouts(Pass):
    """Write the layouts of images out as permutations."""

    name: ClassVar = "write-layouts"
    needs: ClassVar = Stage.ANF
    is_idempotent: ClassVar = True

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        if not _has_layouts(module):
            return module
        module = _with_plain_entry(module, context.entry)
        names = Names()
        adts = {name: _adt(adt) for name, adt in module.adts.items()}
        functions = {
            name: _function(_WriteLayouts(module, names).walked(function))
            for name, function in module.functions.items()
        }
        return replace(module, functions=functions, adts=adts)


def to_last(rank: int) -> tuple[int, ...]:
    """Return the order of dims that puts the channels of images behind height and width."""
    return (*range(rank - 3), rank - 2, rank - 1, rank - 3)


def to_first(rank: int) -> tuple[int, ...]:
    """Return the order of dims that puts the channels of images before height and width again."""
    return (*range(rank - 3), rank - 1, rank - 3, rank - 2)


def _has_layouts(module: Module) -> bool:
    """Return whether tensors may have a layout: one is converted, or comes as an argument."""
    if any(layout_of(f) is not PLAIN for a in module.adts.values() for f in a.fields):
        return True
    for node in nodes_of(module):
        if isinstance(node, Call) and node.callee is to_layout:
            return True
        params = node.params if isinstance(node, Function) else ()
        if any(layout_of(type_of(p)) is not PLAIN for p in params):
            return True
    return False


@final
class _InMemory:
    """The change of types: shapes in the order of memory."""

    @property
    def is_empty(self) -> bool:
        return False

    def __call__(self, ty: Type) -> Type:
        return map_type(ty, _in_memory, self.dim)

    def dim(self, dim: Dim) -> Dim:
        return dim


def _in_memory(ty: Type) -> Type | None:
    if not isinstance(ty, TensorType) or ty.layout is PLAIN:
        return None
    return TensorType(tuple(ty.shape[d] for d in to_last(ty.rank)), ty.dtype)


def _function(function: Function) -> Function:
    found = Retyping(_InMemory()).copy(function)
    assert isinstance(found, Function)
    return found


def _adt(adt: AdtDef) -> AdtDef:
    constructors = tuple(
        ConstructorDef(c.name, tuple(map(_InMemory(), c.fields)), c.field_names)
        for c in adt.constructors
    )
    return replace(adt, constructors=constructors)


@final
class _WriteLayouts(Rewriter):
    """One walk over a function. The types of variables change afterwards."""

    def __init__(self, module: Module, names: Names) -> None:
        super().__init__(module)
        self._names: Final = names

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, with views around a call that reads or makes images."""
        value = yield self.node(binding.value, code)
        match value:
            case Call(callee=Op() as op) if op.layouts is not Layouts.ALIKE and _is_laid(value):
                self._call(binding.var, value, code)
            case _:
                code.bind(binding.var, value)

    def _call(self, var: Var, call: Call, code: BlockBuilder) -> None:
        if call.callee is to_layout:
            self._conversion(var, call, code)
        elif call.callee is batch_norm and _image(call).rank == 4:
            self._rows(var, call, code)
        else:
            args = tuple(self._logical(a, code) for a in call.args)
            plain = replace(call, args=args, ty=in_layout(type_of(call), PLAIN))
            self._laid(var, plain, type_of(call), code)

    def _conversion(self, var: Var, call: Call, code: BlockBuilder) -> None:
        (image,) = call.args
        before, after = type_of(image), type_of(call)
        assert isinstance(after, TensorType)
        if layout_of(before) is layout_of(after):
            self.let(var, image, code)
            return
        order = to_first if layout_of(after) is PLAIN else to_last
        code.bind(var, _moved(permute_copy, image, order(after.rank), _InMemory()(after)))

    def _logical(self, arg: Expr, code: BlockBuilder) -> Expr:
        """Return an operand with its dims in the order of its shape."""
        ty = type_of(arg)
        if layout_of(ty) is PLAIN:
            return arg
        if isinstance(ty, TupleType):
            parts: list[Expr] = []
            for place, field in enumerate(ty.fields):
                part = self._bind(TupleGet(arg, place, ty=field, span=arg.span), code)
                parts.append(self._logical(part, code))
            return self._bind(Tuple(tuple(parts), in_layout(ty, PLAIN), span=arg.span), code)
        assert isinstance(ty, TensorType), "operators take images and tuples of them"
        plain = in_layout(ty, PLAIN)
        return self._bind(_moved(permute, arg, to_first(ty.rank), plain), code)

    def _laid(self, var: Var, value: Expr, wanted: Type, code: BlockBuilder) -> None:
        """Bind a variable to a value with the images of its type in the order of memory."""
        match wanted:
            case _ if layout_of(wanted) is PLAIN:
                code.bind(var, value)
            case TensorType():
                whole = self._bind(value, code)
                ty = _InMemory()(wanted)
                code.bind(var, _moved(permute, whole, to_last(wanted.rank), ty))
            case TupleType(fields):
                whole, parts = self._bind(value, code), list[Expr]()
                for place, field in enumerate(fields):
                    part = Var(self._names.fresh("t"), field, span=value.span)
                    got = TupleGet(whole, place, ty=in_layout(field, PLAIN), span=value.span)
                    self._laid(part, got, field, code)
                    parts.append(part)
                code.bind(var, Tuple(tuple(parts), _InMemory()(wanted), span=value.span))
            case _:
                raise AssertionError("operators give images by themselves")

    def _rows(self, var: Var, call: Call, code: BlockBuilder) -> None:
        """Bind a variable to a batch norm of the rows of pixels: they lie one after another."""
        image, *others = call.args
        ty, found = _image(call), type_of(call)
        assert isinstance(found, TupleType)
        memory = _InMemory()(ty)
        assert isinstance(memory, TensorType)
        flat = (product(memory.shape[:-1]), memory.shape[-1])
        flat_type = TensorType(flat, ty.dtype)
        rows = self._bind(_shaped(image, flat_type), code)
        fields = (flat_type, *found.fields[1:])
        whole = self._bind(replace(call, args=(rows, *others), ty=TupleType(fields)), code)
        parts = [
            self._bind(TupleGet(whole, i, ty=f, span=call.span), code) for i, f in enumerate(fields)
        ]
        parts[0] = self._bind(_shaped(parts[0], memory), code)
        code.bind(var, Tuple(tuple(parts), TupleType((memory, *fields[1:])), span=call.span))

    def _bind(self, value: Expr, code: BlockBuilder) -> Var:
        return code.bind(Var(self._names.fresh("t"), value.ty, span=value.span), value)


def _moved(op: Op, image: Expr, dims: tuple[int, ...], ty: Type) -> Call:
    return Call(op, (image,), {"dims": dims}, ty=ty, span=image.span)


def _shaped(value: Expr, ty: TensorType) -> Call:
    return Call(reshape, (value,), {"shape": ty.shape}, ty=ty, span=value.span)


def _image(call: Call) -> TensorType:
    ty = type_of(call.args[0])
    assert isinstance(ty, TensorType)
    return ty


def _is_laid(call: Call) -> bool:
    """Return whether a call is about layouts: it converts, or an operand or its result has another
    than the plain one."""
    return call.callee is to_layout or any(
        layout_of(type_of(part)) is not PLAIN for part in (*call.args, call)
    )


def _with_plain_entry(module: Module, entry: str) -> Module:
    """Return the module with an entry whose arguments and result lie as their shape says."""
    function = module.functions[entry]
    assert function.result is not None
    if all(layout_of(t) is PLAIN for t in (*map(type_of, function.params), function.result)):
        return module
    names = Names(module.functions)
    inner = names.fresh(f"{entry}_laid")

    def mention(node: Expr) -> Expr:
        is_entry = isinstance(node, GlobalVar) and node.name == entry
        return replace(node, name=inner) if is_entry else node

    functions = {}
    for name, each in module.functions.items():
        functions[inner if name == entry else name] = rewrite(each, mention)
    functions[entry] = _plain_entry(function, GlobalVar(inner, span=function.span), names)
    return replace(module, functions=functions)


def _plain_entry(function: Function, callee: GlobalVar, names: Names) -> Function:
    """Return a function that converts its arguments, calls `callee`, and converts the result."""
    span = function.span
    code = BlockBuilder()
    params = tuple(replace(p, ty=in_layout(type_of(p), PLAIN)) for p in function.params)
    pairs = zip(params, function.params, strict=True)
    args = tuple(_converted(p, type_of(own), code, names) for p, own in pairs)
    types = as_arguments(function.type_params)
    call = Call(callee, args, type_args=types, ty=function.result, span=span)
    found = code.bind(Var(names.fresh("result"), function.result, span=span), call)
    plain = in_layout(type_of(found), PLAIN)
    body = code.close(_converted(found, plain, code, names))
    ty = FnType(tuple(map(type_of, params)), plain, function.type_params)
    return replace(function, params=params, body=body, result=plain, ty=ty)


def _converted(value: Var, wanted: Type, code: BlockBuilder, names: Names) -> Var:
    """Return a value with its images in the layouts of a type."""
    ty = type_of(value)
    match ty, wanted:
        case TensorType(), TensorType(layout=layout) if ty != wanted:
            call = Call(to_layout, (value,), {"layout": layout.value}, ty=wanted, span=value.span)
        case TupleType(fields), TupleType(types) if ty != wanted:
            parts: list[Expr] = []
            for place, (field, each) in enumerate(zip(fields, types, strict=True)):
                part = Var(names.fresh("t"), field, span=value.span)
                code.bind(part, TupleGet(value, place, ty=field, span=value.span))
                parts.append(_converted(part, each, code, names))
            call = Tuple(tuple(parts), wanted, span=value.span)
        case _:
            return value
    return code.bind(Var(names.fresh("t"), wanted, span=value.span), call)
