"""The state that the functions of one Python file share: imports, sizes, constants, the names of
functions.

All names that a file may define are taken before the first function is printed, so that no local
name hides one; every name that is mentioned in the end is defined, and no other.
"""

from __future__ import annotations

import ast
import base64
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final, final

from ..ir.dims import Dim
from ..ir.expr import Call, Expr, Function, TensorData, type_of
from ..ir.module import AdtDef, Module
from ..ir.op import Op
from ..ir.traverse import post_order
from ..ir.types import (
    ITERABLE,
    UNIT,
    AdtType,
    DType,
    FnType,
    Layout,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    bool_,
    dim_names,
    element_name,
    float32,
    int64,
)
from ..operators.host.stream import element_type
from ..prelude.library import OPTION, inner_of
from ..text.lexis import elements
from ..translate.types.annotation import type_names
from . import syntax
from .contents import (
    constants,
    operators,
    reads_element,
    size_names,
    type_variables,
)
from .data import LIBRARY_CLASSES, LIBRARY_TYPES, DataNames, definitions
from .expressible import leaves_open
from .imports import described_home, home, is_own
from .names import Identifiers
from .undetermined import undetermined

NOTHING: Final[Mapping[str, ast.expr]] = MappingProxyType({})
_ELEMENTS: Final = {float32: "Float", int64: "Int", bool_: "Bool"}
_LIBRARY: Final = (
    "Generic",
    "Iterable",
    "Literal",
    "Never",
    "TypeAliasType",
    "TypeVar",
    "annotations",
    "assert_never",
    "base64",
    "dataclass",
    "math",
    "torch",
)
_LIBRARY_MODULES: Final = {
    "dataclasses": ("dataclass",),
    "typing": ("Generic", "Literal", "Never", "TypeVar", "assert_never"),
    "collections.abc": ("Iterable",),
}
_KINDS: Final = ("int", "uint", "float")
_DTYPES: Final = tuple(f"{kind}{bits}" for kind in _KINDS for bits in (8, 16, 32, 64))
_PRELUDE: Final = {*LIBRARY_TYPES.values(), *LIBRARY_CLASSES.values()}
_OURS: Final = {
    "Batch",
    "Dim",
    "Fn",
    "NHWC",
    "Ref",
    "Tensor",
    *_ELEMENTS.values(),
    *_DTYPES,
    "bfloat16",
}


@final
class File:
    """The names of one file, and its text around the functions."""

    def __init__(self, module: Module) -> None:
        self.names: Final = Identifiers((*_LIBRARY, *sorted(_OURS | _PRELUDE), "relay"))
        self._undetermined: Final = {n: undetermined(f) for n, f in module.functions.items()}
        self._module: Final = module
        self.functions: Final = {n: self.names.fresh(n) for n in module.functions}
        self._used: Final[dict[str, None]] = {}
        self._dims = {n: self.names.fresh(n) for n in size_names(module)}
        self._variables = {n: self.names.fresh(n) for n in type_variables(module)}
        self.data: Final = DataNames(module, self.names)
        self._constants: Final[dict[TensorData, str]] = {}
        for constant in constants(module):
            if constant not in self._constants:
                self._constants[constant] = self.names.fresh("constant")
        self._own: Final = {
            found: self.names.fresh(found.name)
            for op in dict.fromkeys(operators(module))
            if is_own(op) and (found := home(op)) is not None
        }
        self.given: Final = {
            op: self.names.fresh(op.name)
            for op in dict.fromkeys(operators(module))
            if is_own(op) and home(op) is None
        }
        """The operators that no file can import, which are given to this one."""

    def function(self, name: str) -> ast.expr:
        """Return the mention of a global function. One that is not called here has no written type
        arguments: they are inferred where it is used."""
        return syntax.name(self.functions[name])

    def is_iterable(self, ty: Type) -> bool:
        """Return whether a type is Python's iterables, not a data type of that name."""
        return ty == ITERABLE and ITERABLE.name not in self.data.types

    def iterable(self, function: Function) -> ast.expr:
        """Return the type of a parameter that a loop reads element by element."""
        calls = (n for f in (function, *self._module.functions.values()) for n in post_order(f))
        found = (n.attrs["element"] for n in calls if isinstance(n, Call) and reads_element(n))
        # What is only passed on may be read as anything.
        return syntax.item(self.use("Iterable"), self.described(next(found, ("str",))))

    def described(self, element: tuple[Any, ...]) -> ast.expr:
        """Return the type of what an iterator gives."""
        annotation = self.annotation(element_type(element, Dim.of))
        assert annotation is not None, "elements are numbers, tensors, strings and tuples"
        return annotation

    def instance(self, call: Call, name: str, sizes: AbstractSet[str]) -> ast.expr:
        """Return the mention of a global function in a call, with the type arguments that
        cannot be inferred; `sizes` are known there."""
        if not self._undetermined[name]:
            return self.function(name)
        function = self._module.functions[name]
        at = dict(zip(function.type_params, call.type_args, strict=True))
        free = [
            a for p, a in at.items() if p.name in self._undetermined[name] and isinstance(a, Dim)
        ]
        if all(a.name is not None and a.name not in sizes for a in free):
            return syntax.name(self.functions[name])  # not determined, so they are inferred again
        named = type_names(type_of(p) for p in function.params)
        given = [self.argument(at[p]) for p in named if p in at]
        known = [g for g in given if g is not None]
        assert len(known) == len(function.type_params), "type arguments are written"
        inside = known[0] if len(known) == 1 else syntax.tuple_of(known)
        return syntax.item(syntax.name(self.functions[name]), inside)

    def argument(self, arg: Type | Dim) -> ast.expr | None:
        """Return a type argument; None for one that no annotation says."""
        return self.dim(arg) if isinstance(arg, Dim) else self.annotation(arg)

    def leaves_open(self, value: Expr) -> bool:
        """Return whether a value is made by a constructor whose fields do not determine its
        type."""
        return leaves_open(value, self._module.adts)

    def parameters(self, name: str) -> tuple[str, ...]:
        """Return the names of a global function's parameters, the first names it takes."""
        names = self.names.inside()
        return tuple(names.fresh(p.name) for p in self._module.functions[name].params)

    def constructor(self, adt: str, name: str) -> ast.Name:
        """Return the class that a constructor is."""
        if (adt, name) in LIBRARY_CLASSES:
            return self.use(LIBRARY_CLASSES[adt, name])
        return syntax.name(self.data.class_of(adt, name))

    def use(self, name: str) -> ast.Name:
        """Mention a name of the file, which is then defined or imported."""
        self._used[name] = None
        return syntax.name(name)

    # Types

    def result(self, ty: Type, sizes: AbstractSet[str]) -> ast.expr | None:
        """Return a type as that of a result, where only these sizes are known outside."""
        return self.annotation(ty) if dim_names(ty) <= sizes else None

    def annotation(self, ty: Type) -> ast.expr | None:
        """Return a type as an annotation; None for one that no annotation says."""
        match ty:
            case TensorType((), DType() as dtype):
                return self.element(dtype)
            case TensorType(shape, DType() as dtype, layout):
                entries = [self.element(dtype), syntax.tuple_of([self.dim(d) for d in shape])]
                if layout is not Layout.NCHW:
                    entries.append(self.use(layout.value))
                return syntax.item(self.use("Tensor"), syntax.tuple_of(entries))
            case SizeType(dim):
                return self._size(dim)
            case TypeVar(name):
                return self.use(self._variables[name])
            case _:
                return self._compound(ty)

    def _size(self, dim: Dim) -> ast.expr:
        if dim.constant is None:
            return self.dim(dim)
        return syntax.item(self.use("Literal"), syntax.number(dim.constant))

    def _compound(self, ty: Type) -> ast.expr | None:
        """Return a type made of others."""
        match ty:
            case TupleType(()):
                return ast.Constant(None)
            case StrType():
                return syntax.name("str")
            case TupleType(fields):
                return self._tuple(fields)
            case FnType(params, result, ()):
                return self._function(params, result)
            case RefType(content):
                inside = self.annotation(content)
                return inside and syntax.item(self.use("Ref"), inside)
            case AdtType(name, (inner,)) if name == OPTION and not isinstance(inner, Dim):
                return self._optional(inner)
            case AdtType(name, args) if name in LIBRARY_TYPES:
                return self._applied(self.use(LIBRARY_TYPES[name]).id, args)
            case AdtType(name, (*args, Dim() as size)) if element_name(name) is not None:
                inside = self.annotation(AdtType(element_name(name) or name, tuple(args)))
                return inside and syntax.item(
                    self.use("Batch"), syntax.tuple_of([inside, self.dim(size)])
                )
            case AdtType(name, args) if name in self.data.types:
                return self._applied(self.data.types[name], args)
            case _:
                return None

    def _optional(self, inner: Type) -> ast.expr | None:
        """Return `T | None`; where `T` may be None itself, that would be `T`."""
        if inner == UNIT or inner_of(inner) is not None:
            return self._applied(self.use("Option").id, (inner,))
        found = self.annotation(inner)
        return found and ast.BinOp(found, ast.BitOr(), ast.Constant(None))

    def _applied(self, name: str, args: tuple[Type | Dim, ...]) -> ast.expr | None:
        """Return a data type at its arguments."""
        given = [self.argument(a) for a in args]
        known = [a for a in given if a is not None]
        if len(known) < len(args):
            return None
        if not known:
            return syntax.name(name)
        inside = known[0] if len(known) == 1 else syntax.tuple_of(known)
        return syntax.item(syntax.name(name), inside)

    def _annotations(self, types: Iterable[Type]) -> list[ast.expr] | None:
        found = [self.annotation(t) for t in types]
        known = [a for a in found if a is not None]
        return known if len(known) == len(found) else None

    def _tuple(self, fields: tuple[Type, ...]) -> ast.expr | None:
        inside = self._annotations(fields)
        if inside is None:
            return None
        return syntax.item(syntax.name("tuple"), syntax.tuple_of(inside))

    def _function(self, params: tuple[Type, ...], result: Type) -> ast.expr | None:
        given = self._annotations((*params, result))
        if given is None:
            return None
        taken = ast.List(given[:-1], syntax.LOAD)
        return syntax.item(self.use("Fn"), syntax.tuple_of([taken, given[-1]]))

    def element(self, dtype: DType) -> ast.expr:
        """Return an element type."""
        return self.use(_ELEMENTS.get(dtype, dtype.name))

    def dtype(self, dtype: DType) -> ast.expr:
        """Return an element type as an argument of an operator."""
        return syntax.attribute(self.use("relay"), dtype.name)

    # Sizes

    def dim(self, value: Dim) -> ast.expr:
        """Return a size in an annotation."""
        return syntax.dim(value, self._sizes(value), runs=False)

    def static_dim(self, value: Dim, found: Mapping[str, ast.expr]) -> ast.expr:
        """Return a size in a static argument, where some are found while the program runs."""
        return syntax.dim(value, self._sizes(value, found), runs=True)

    def _sizes(self, value: Dim, found: Mapping[str, ast.expr] = NOTHING) -> dict[str, ast.expr]:
        return {
            n: found[n] if n in found else self.use(self._dims[n]) for n in sorted(value.names())
        }

    # Constants

    def constant(self, data: TensorData) -> ast.expr:
        """Return the mention of a tensor."""
        return self.use(self._constants[data])

    def operator(self, op: Op) -> ast.expr:
        """Return the mention of an operator of a user's own."""
        found = home(op)
        return self.use(self.given[op] if found is None else self._own[found])

    # The text

    def head(self) -> str:
        """Return the head of the file: imports, sizes, constants."""
        classes = [g for adt in self._module.adts.values() for g in self._classes(adt)]
        body: list[ast.stmt] = []
        for name, kept in self._dims.items():
            if kept in self._used:
                made = syntax.call(self.use("Dim"), [ast.Constant(identified(name, kept))])
                body.append(syntax.assign(kept, made))
        for kept in self._variables.values():
            if kept in self._used:
                made = syntax.call(self.use("TypeVar"), [ast.Constant(kept)])
                body.append(syntax.assign(kept, made))
        for data, kept in self._constants.items():
            if kept in self._used:
                body.append(syntax.assign(kept, self._tensor(data)))
        imports, rest = (
            [
                "\n".join(ast.unparse(ast.fix_missing_locations(s)).strip() for s in g)
                for g in groups
                if g
            ]
            for groups in (self._imports(), [body, *classes])
        )
        return "\n\n".join([*imports, *self._wanted(), *rest])

    def _wanted(self) -> list[str]:
        """Return the comment on operators that the file needs and cannot import."""
        wanted = [
            f"# {kept}: {place}"
            for op, kept in self.given.items()
            if kept in self._used and (place := described_home(op))
        ]
        head = "# Define or import these here; no module has them as a name:"
        return ["\n".join([head, *wanted])] if wanted else []

    def _classes(self, adt: AdtDef) -> Iterator[list[ast.stmt]]:
        """Return the definition of a data type."""
        if adt.name not in self.data.types:
            return
        params, dims, variables = self.data.params[adt.name], self._dims, self._variables
        # In the fields the parameters are type variables, also those that stand for sizes.
        self._dims, self._variables = {**dims, **params}, {**variables, **params}

        def annotation(ty: Type) -> ast.expr:
            found = self.annotation(ty)
            assert found is not None, "annotations express the types of fields"
            return found

        yield from definitions(adt, self.data, annotation, self.use)
        self._dims, self._variables = dims, variables

    def _imports(self) -> list[list[ast.stmt]]:
        """Return the imports in groups: of the standard library, of other packages, of pyrelay."""
        library: list[ast.stmt] = [
            ast.Import([ast.alias(n)]) for n in ("base64", "math") if n in self._used
        ]
        if self.data.types:
            library.insert(0, ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
        for module, known in _LIBRARY_MODULES.items():
            found = [ast.alias(n) for n in known if n in self._used]
            library += [ast.ImportFrom(module, found, 0)] if found else []
        others: list[ast.stmt] = [ast.Import([ast.alias("torch")])] if "torch" in self._used else []
        if "TypeAliasType" in self._used:  # `typing` has it from Python 3.12 on
            others.append(ast.ImportFrom("typing_extensions", [ast.alias("TypeAliasType")], 0))
        names = sorted(n for n in self._used if n in _OURS)
        prelude = [ast.alias(n) for n in sorted(self._used) if n in _PRELUDE]
        own: list[ast.stmt] = [
            ast.ImportFrom(found.module, [_renamed(found.name, kept)], 0)
            for found, kept in self._own.items()
            if kept in self._used
        ]
        return [
            library,
            others,
            [
                ast.ImportFrom("pyrelay", [ast.alias(n) for n in (*names, "relay")], 0),
                *([ast.ImportFrom("pyrelay.prelude", prelude, 0)] if prelude else []),
            ],
            own,
        ]

    def _tensor(self, data: TensorData) -> ast.expr:
        """Return `relay.const(...)` of the elements, exactly."""
        torch = self.use("torch")
        dtype = {"dtype": syntax.attribute(torch, data.dtype.name)}
        shape = syntax.tuple_of([ast.Constant(n) for n in data.shape])
        values = elements(data)
        if values is not None:
            listed = ast.List([self.number(v) for v in values], syntax.LOAD)
            flat = syntax.call(syntax.attribute(torch, "tensor"), [listed], dtype)
        else:
            decode = syntax.attribute(self.use("base64"), "b64decode")
            whole = base64.b64encode(data.data).decode()
            raw = syntax.call(decode, [ast.Constant(whole)])
            buffer = syntax.call(syntax.name("bytearray"), [raw])
            flat = syntax.call(syntax.attribute(torch, "frombuffer"), [buffer], dtype)
        shaped = syntax.call(syntax.attribute(flat, "reshape"), [shape])
        return syntax.call(syntax.attribute(self.use("relay"), "const"), [shaped])

    def number(self, value: float) -> ast.expr:
        """Return a number."""
        found = syntax.number(value)
        if any(isinstance(n, ast.Name) for n in ast.walk(found)):
            self.use("math")
        return found


def identified(name: str, kept: str) -> str:
    """Return the name of a dim, which must be an identifier."""
    return name if name.isidentifier() else kept


def _renamed(name: str, kept: str) -> ast.alias:
    return ast.alias(name, None if kept == name else kept)
