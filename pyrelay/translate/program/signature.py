"""Signatures of relay functions: parameters, defaults, what is static, how the result goes back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, final

from ...annotations import ModelAnnotation, ParamsAnnotation
from ...dataclass import dataclass
from ...diagnostics.catalogue.signatures import MutableDefault, UnannotatedParameter
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ...ir.dims import Dim
from ...ir.types import UNKNOWN, SizeType, Type, TypeParam
from ..data.data import DataTypes
from ..source.definition import Definition, Implicit
from ..source.optimizers import OptimizerUse, is_optimizer
from ..source.scope import MISSING, Scope, is_data
from ..types.annotation import Annotation, AnnotationReader, type_names
from ..types.number_places import Numbers, Recorded

STATIC_TYPES: Final = (int, float, bool, str)


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as the user wrote it.

    `static` is the Python type of a static parameter: keyword-only and annotated with plain `int`,
    `float`, `bool` or `str`; or `OptimizerUse` for an optimiser. `default` is MISSING where there
    is none.
    """

    name: str
    ty: Type
    span: Span
    default: Any = MISSING
    keyword_only: bool = False
    static: type | None = None
    model: ModelAnnotation | None = None
    params: ParamsAnnotation | None = None
    """The model of whose parameters it is a record."""
    element: Type | None = None
    """The element type of an iterable."""
    numbers: Numbers = None
    """Where in the argument numbers are Python's own."""
    is_list: bool = False
    """Whether it is a list of the models that it is annotated with."""
    implicit: Implicit | None = None
    """The names it stands for that the function, or one that it calls, mentions."""
    is_refused: bool = False
    """Whether its annotation is no type, which has been reported."""

    @property
    def of(self) -> ModelAnnotation | ParamsAnnotation | None:
        """The model that it is, or of whose parameters it is a record, as it is annotated."""
        return self.model or self.params

    @property
    def required(self) -> bool:
        """Return whether a call must give it."""
        return self.default is MISSING


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a relay function.

    `result` is None where it is not annotated; `numbers` says where in the result numbers go back
    as Python's own. `text` shows it as it is written.
    """

    parameters: tuple[Parameter, ...]
    result: Type | None
    numbers: Numbers
    text: str

    @property
    def statics(self) -> tuple[Parameter, ...]:
        """The static parameters."""
        return tuple(p for p in self.parameters if p.static is not None)

    @property
    def values(self) -> tuple[Parameter, ...]:
        """The parameters that are passed when the program runs."""
        return tuple(p for p in self.parameters if p.static is None)

    @property
    def explicit(self) -> tuple[Parameter, ...]:
        """The values that a call gives by position."""
        return tuple(p for p in self.values if p.implicit is None)

    @property
    def implicit(self) -> tuple[Parameter, ...]:
        """The values that stand for what the function mentions; they come last."""
        return tuple(p for p in self.values if p.implicit is not None)

    @property
    def dims(self) -> tuple[tuple[str, Dim], ...]:
        """The parameters that are sizes, with the dims that they bind."""
        return tuple((p.name, p.ty.dim) for p in self.parameters if isinstance(p.ty, SizeType))

    @property
    def type_params(self) -> tuple[TypeParam, ...]:
        """The named sizes and the type variables in the types of the parameters."""
        return type_names(p.ty for p in self.parameters)


def read_signature(
    definition: Definition, scope: Scope, report: Callable[[Problem], None], data: DataTypes
) -> Signature:
    """Return the signature of a definition, with types of `data`; what cannot be read is
    reported."""
    source = definition.source
    args = source.node.args
    reader = AnnotationReader(scope.namespace(), report, data)
    parameters = tuple(_parameters(definition, reader, report, data))
    result = None
    if source.node.returns is not None:
        result = reader.read_result(source.node.returns, source.span(source.node.returns))
    text = f"{definition.name}({ast.unparse(args)})"
    ty, numbers = _result(result)
    return Signature(parameters, ty, numbers, text)


def with_implicits(signature: Signature, implicits: Iterable[Parameter]) -> Signature:
    """Return the signature of a function that takes implicit values too."""
    return replace(signature, parameters=(*signature.parameters, *implicits))


def implicit_parameter(
    implicit: Implicit, definition: Definition, reader: AnnotationReader
) -> Parameter:
    """Return the parameter of a function for an implicit value."""
    span = definition.source.head
    found = reader.read_value(implicit.annotation, f"relay.implicit({implicit.name!r}, ...)", span)
    ty, numbers = (UNKNOWN, None) if found is None else (found.ty, found.numbers)
    return Parameter(
        implicit.name,
        ty,
        span,
        implicit.default,
        keyword_only=True,
        numbers=numbers,
        implicit=implicit,
    )


def _result(annotation: Annotation | None) -> tuple[Type | None, Numbers]:
    if annotation is None or annotation.model is not None:
        return None, None
    return None if annotation.params else annotation.ty, annotation.numbers


def _parameters(
    definition: Definition,
    reader: AnnotationReader,
    report: Callable[[Problem], None],
    data: DataTypes,
) -> Iterator[Parameter]:
    source, function = definition.source, definition.function
    args = source.node.args
    positional = [*args.posonlyargs, *args.args]
    given = function.__defaults__ or ()
    names = [a.arg for a in positional[len(positional) - len(given) :]]
    defaults: dict[str, Any] = dict(zip(names, given, strict=True))
    defaults |= function.__kwdefaults__ or {}
    places = dict(zip(names, args.defaults, strict=True))
    places |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d}
    owner = definition.owner
    if owner is not None and (owner.takes_self or owner.takes_class) and positional:
        first, *positional = positional
        span = source.span(first)
        if owner.takes_self:
            yield Parameter(first.arg, data.instance(owner.cls, reader.namespace, span), span)
    for arg in (*positional, *args.kwonlyargs):
        span = source.span(arg)
        default = defaults.get(arg.arg, MISSING)
        if default is not MISSING and not is_data(default) and not is_optimizer(default):
            kind = type(default).__name__
            report(MutableDefault(source.span(places[arg.arg]), arg.arg, kind))
        if arg.annotation is None:
            report(UnannotatedParameter(span, arg.arg, definition.name))
            yield Parameter(arg.arg, UNKNOWN, span, default)
            continue
        found = reader.read(arg.annotation, source.span(arg.annotation))
        yield _parameter(arg.arg, found, span, default, keyword_only=arg in args.kwonlyargs)
        if found is not None and isinstance(found.ty, SizeType):
            reader.define(arg.arg, found.ty.dim)


def _parameter(
    name: str, found: Annotation | None, span: Span, default: Any, *, keyword_only: bool
) -> Parameter:
    if found is None:
        return Parameter(name, UNKNOWN, span, default, keyword_only, is_refused=True)
    static = found.python if keyword_only and found.python in STATIC_TYPES else None
    static = OptimizerUse if found.is_optimizer else static
    return Parameter(
        name,
        found.ty,
        span,
        default,
        keyword_only,
        static,
        found.model,
        found.params,
        found.element,
        Recorded(found.params, name) if found.params else found.numbers,
        found.is_list,
    )
