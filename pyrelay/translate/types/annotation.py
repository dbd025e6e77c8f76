"""Annotations as IR types.

An annotation is evaluated where the function was written, names of functions around it included,
so strings, aliases and `from __future__ import annotations` all read the same. The object it gives
is then read as a type.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, final

from ... import annotations as written
from ...dataclass import dataclass
from ...diagnostics.catalogue.names import UndefinedName
from ...diagnostics.catalogue.signatures import UnreadableAnnotation
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import NOWHERE, Span
from ...ir.derived_types.batch_dims import NoBatch, with_batch
from ...ir.dims import Dim, DimVar
from ...ir.module import AdtDef
from ...ir.own_sizes import with_own_sizes
from ...ir.types import (
    ANY_DIM,
    ANY_DIMS,
    BOOL,
    FLOAT,
    INT,
    ITERABLE,
    PRELUDE,
    STR,
    UNIT,
    UNKNOWN,
    AdtType,
    DType,
    FnType,
    Layout,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    dims,
    open_shapes,
    subtypes,
)
from ...prelude.library import LIST
from ...prelude.names import TYPES as LIBRARY_TYPES
from ..source.definition import meaning
from ..source.scope import nearest
from .aliases import abbreviation, is_size, type_of, wrong_arguments
from .annotation_values import ITERABLE_WAY, DimNames, evaluate, literal, reason
from .number_places import MARKS, TUPLE_MARK, Numbers, Recorded, places_of

NUMBERS: Final[dict[Any, Type]] = {float: FLOAT, int: INT, bool: BOOL}
"""Python's own number types: the type in the IR; results come back as Python numbers."""


ITERABLES: Final = (collections.abc.Iterable, collections.abc.Iterator, collections.abc.Generator)
"""Annotations of parameters that a `for` loop reads element by element."""

SEQUENCES: Final = (list, collections.abc.Sequence)
"""Classes of Python that annotate lists, as `List` of the prelude does."""

_UNBOUNDED: Final = "leave the bound out: `T` may be any type; one that is a size may say `N: Dim`"
PLAIN: Final[dict[Any, Type]] = {**NUMBERS, str: STR, type(None): UNIT}
MARKED: Final[dict[Any, Type]] = {**PLAIN, **MARKS}

T = typing.TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation that was read: its type, and the facts that a type does not show."""

    ty: Type
    python: type | None = None
    """`float`, `int` or `bool` when it was annotated so, and for static parameters `str`."""
    numbers: Numbers = None
    """Where in its values numbers are Python's own."""
    model: written.ModelAnnotation | None = None
    params: written.ParamsAnnotation | None = None
    """The model of whose parameters it is a record."""
    is_list: bool = False
    """Whether it is a list of models."""
    is_optimizer: bool = False
    element: Type | None = None
    """The element type of an iterable, where it was annotated as one."""


class NotAType(Exception):  # noqa: N818  becomes a diagnostic where the annotation stands
    """An annotation cannot be read: why, and what to write instead."""

    def __init__(self, why: str, instead: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


class NotData(Exception):  # noqa: N818  becomes a diagnostic where the class is mentioned
    """A class or a union cannot be a data type."""

    def __init__(self, problem: Callable[[Span], Problem]) -> None:
        super().__init__()
        self.problem = problem


class DataTypes(Protocol):
    """The data types of a program, as far as annotations name them."""

    def annotation(self, value: Any, reader: AnnotationReader, span: Span) -> Type | None:
        """Return the type that a class, an alias or a union names; None for any other object."""
        ...

    def define_derived(self, ty: Type, span: Span) -> None:
        """Define the types of tensors with sizes of their own, and of batches, that a type
        mentions."""
        ...

    @property
    def adts(self) -> Mapping[str, AdtDef]:
        """The data types by name."""
        ...


@final
class AnnotationReader:
    """Reads the annotations of one function."""

    def __init__(
        self,
        namespace: dict[str, Any],
        report: Callable[[Problem], None],
        data: DataTypes | None = None,
        plain: Mapping[Any, Type] = PLAIN,
    ) -> None:
        """`data` are the data types of the program; without, no class is one. `plain` are the
        types that Python's own stand for."""
        self._plain: Final = plain
        self._namespace: Final = namespace
        self._report: Final = report
        self._data: Final = data
        self._open = 0
        self._span = NOWHERE
        self._opened: Final[list[Any]] = []
        self._takes_records = False
        """Whether a tuple may have records of parameters as fields: in results."""
        self.records: Final[dict[Type, Recorded]] = {}
        """The records that were read, by what marks them."""

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The names that annotations may mention."""
        return self._namespace

    def define(self, name: str, dim: Dim) -> None:
        """Let later annotations use a parameter that holds a size."""
        self._namespace[name] = dim

    def read(self, node: ast.expr, span: Span) -> Annotation | None:
        """Return the annotation; None when it cannot be read, which is reported."""
        return self._read(node, span, self._annotation)

    def read_value(self, value: Any, text: str, span: Span) -> Annotation | None:
        """Return the annotation that an object is, shown as `text`; others are reported."""
        return self._given(text, span, lambda: self._annotation(value))

    def read_result(self, node: ast.expr, span: Span) -> Annotation | None:
        """Return the annotation of a result, in which records of parameters may be parts of a
        tuple; None when it cannot be read, which is reported."""
        self._takes_records = True
        try:
            return self.read(node, span)
        finally:
            self._takes_records = False

    def read_argument(self, node: ast.expr, span: Span) -> Type | Dim | None:
        """Return a type argument: a type or a size; None when it is neither, which is reported."""
        return self._read(node, span, self._argument)

    def _argument(self, value: Any) -> Type | Dim:
        return self.dim(value) if isinstance(value, Dim | int) else self.type(value)

    def _read(self, node: ast.expr, span: Span, give: Callable[[Any], T]) -> T | None:
        """Return the type that an annotation stands for; None when there is none, which is
        reported."""
        return self._given(span.text, span, lambda: give(evaluate(node, self._namespace)))

    def _given(self, text: str, span: Span, give: Callable[[], T]) -> T | None:
        self._span = span
        try:
            return give()
        except NameError as error:
            name = error.name or text
            known = (*self._namespace, *vars(builtins))
            self._report(UndefinedName(span, name, nearest(name, known)))
        except NotAType as error:
            self._report(UnreadableAnnotation(span, text, error.why, error.instead))
        except NotData as error:
            self._report(error.problem(span))
        except Exception as error:  # whatever the user's own expression raises
            why = f"evaluating it raises {type(error).__name__}: {error}"
            self._report(UnreadableAnnotation(span, text, why))
        return None

    def _annotation(self, value: Any) -> Annotation:
        if value is written.Model or isinstance(value, written.ModelAnnotation):
            model = value if isinstance(value, written.ModelAnnotation) else None
            return Annotation(UNKNOWN, model=model or written.ModelAnnotation(None))
        if _is_list(value) and isinstance(typing.get_args(value)[0], written.ModelAnnotation):
            return Annotation(UNKNOWN, model=typing.get_args(value)[0], is_list=True)
        if isinstance(value, written.ParamsAnnotation):
            return Annotation(UNKNOWN, numbers=Recorded(value), params=value)
        if value is written.Optimizer:
            return Annotation(UNKNOWN, is_optimizer=True)
        if (typing.get_origin(value) or value) in ITERABLES:
            return Annotation(ITERABLE, element=self._element(value))
        python = value if value in (float, int, bool, str) else None
        if python is str:
            return Annotation(STR, python=str)
        return Annotation(self.type(value), python, self.numbers(value))

    def numbers(self, value: Any) -> Numbers:
        """Return where in the values of an annotation numbers are Python's own. Raises what reading
        it raises."""
        reader = self.marking()
        return places_of(reader.type(value), reader.records)

    def marking(self) -> AnnotationReader:
        """Return a reader of the same annotations that marks Python's number types."""
        reader = AnnotationReader(self._namespace, self._report, self._data, MARKED)
        reader._span, reader._takes_records = self._span, self._takes_records
        return reader

    def _element(self, value: Any) -> Type:
        args = typing.get_args(value)
        if not args:
            raise NotAType("it does not say what the elements are", ITERABLE_WAY)
        found = self.type(args[0])
        if open_shapes(found):
            raise NotAType("the rank of its elements is open", "write each element's shape out")
        return found

    def type(self, value: Any) -> Type:
        """Return the type that an object stands for in an annotation. Raises NotAType."""
        alone = _stands_alone(value)
        if alone is not None:
            is_record = isinstance(value, written.ParamsAnnotation)
            way = "make it a parameter of its own"
            way += ", or a field of a tuple in a result" if is_record else ""
            raise NotAType(f"{alone} stands alone as the annotation of a parameter", way)
        if isinstance(value, str | typing.ForwardRef):
            is_text = isinstance(value, str)
            return self.type(self.evaluate(value if is_text else value.__forward_arg__))
        if isinstance(value, type) and value in self._plain:
            return self._plain[value]
        match value:
            case None:
                return UNIT
            case written.TensorAnnotation(items):
                return self._tensor(items)
            case written.FnAnnotation(params, result):
                return FnType(tuple(self.type(p) for p in params), self.type(result))
            case written.RefAnnotation(content):
                return RefType(self.type(content))
            case Dim():
                return SizeType(value)
            case _ if isinstance(meaning(value), DType):
                return TensorType((), meaning(value))
            case _:
                return self._generic(value)

    def _batch(self, element: Any, sizes: tuple[Any, ...]) -> Type:
        """Return the type of values side by side, the first size outermost."""
        reader = AnnotationReader(self._namespace, self._report, self._data)
        found = reader.type(element)  # numbers side by side are tensors
        try:
            for size in reversed(sizes):
                adts = {} if self._data is None else self._data.adts
                found = with_batch(found, 0, self.dim(size), adts)
                if self._data is not None:
                    self._data.define_derived(found, self._span)
        except NoBatch as error:
            raise NotAType(str(error), error.help) from None
        return found

    def _generic(self, value: Any) -> Type:
        if isinstance(value, written.BatchAnnotation):
            return self._batch(value.element, value.sizes)
        origin, args = typing.get_origin(value), typing.get_args(value)
        if origin is typing.Annotated and args[0] is int and isinstance(args[1], Dim):
            return SizeType(args[1])
        if origin is typing.Annotated:
            return self._tensor((meaning(args[0]) or args[0], *args[1:]))
        if origin is tuple:
            if args == ((),):
                return UNIT
            if len(args) == 2 and args[1] is Ellipsis:
                element = self.type_in_data(args[0])
                return AdtType(TUPLE_MARK if self._plain is MARKED else LIST, (element,))
            return TupleType(tuple(self._field(a) for a in args))
        if origin is Callable and len(args) == 2 and isinstance(args[0], list):
            return FnType(tuple(self.type(a) for a in args[0]), self.type(args[1]))
        return self._named(value)

    def _field(self, value: Any) -> Type:
        """Return the type of a field of a tuple."""
        if isinstance(value, str | typing.ForwardRef):
            text = value if isinstance(value, str) else value.__forward_arg__
            return self._field(self.evaluate(text))
        if not self._takes_records or not isinstance(value, written.ParamsAnnotation):
            return self.type(value)
        if self._plain is not MARKED:
            return UNKNOWN
        mark = AdtType(f"python.params{len(self.records)}")
        self.records[mark] = Recorded(value)
        return mark

    def _named(self, value: Any) -> Type:
        """Return the type that a name stands for: a type variable, a data type."""
        if isinstance(value, typing.TypeVar):
            return _type_variable(value)
        number = literal(value)
        if number is not None:
            return SizeType(Dim.of(number))
        origin = typing.get_origin(value)
        args = typing.get_args(value)
        if args and (origin in SEQUENCES or origin in LIBRARY_TYPES):
            elements = tuple(self.type_in_data(a) for a in args)
            return AdtType(LIBRARY_TYPES.get(origin, LIST), elements)
        if value is written.Ref:
            raise NotAType("the type of its content is missing", "write `Ref[Float]`")
        if (origin or value) in _NAMED_TYPES:
            return _without_elements(origin or value)
        wrong = wrong_arguments(value)
        if wrong is not None:
            raise NotAType(wrong)
        short = abbreviation(value, self.evaluate)
        if short is not None:
            return self._abbreviated(*short)
        found = None if self._data is None else self._data.annotation(value, self, self._span)
        if found is None:
            raise NotAType(*reason(value, origin))
        return found

    def _abbreviated(self, alias: Any, args: tuple[Any, ...]) -> Type:
        if alias in self._opened:
            instead = "make it a frozen dataclass, or a union of some, which may mention itself"
            raise NotAType(f"`{alias.__name__}` stands for a type that mentions itself", instead)
        self._opened.append(alias)
        try:
            return type_of(alias, args, self)
        finally:
            self._opened.pop()

    def type_in_data(self, value: Any) -> Type:
        """Return the element types of a list or other data: a size that is left open in it is
        another one in each."""
        before = self._open
        found = self.type(value)
        found = with_own_sizes(found, {f"{ANY_DIM}{n + 1}" for n in range(before, self._open)})
        if self._data is not None:
            self._data.define_derived(found, self._span)
        return found

    def evaluate(self, text: str) -> Any:
        """Return the value of an annotation that is text. Raises what evaluating it raises."""
        return evaluate(text, self._namespace)

    def open_dim(self) -> Dim:
        """Return a size that an annotation leaves open."""
        self._open += 1
        return Dim.of(f"{ANY_DIM}{self._open}")

    def _tensor(self, items: tuple[Any, ...]) -> Type:
        dtypes = [meaning(i) if i not in NUMBERS else _dtype(i) for i in items if _is_dtype(i)]
        layouts = [i for i in items if isinstance(i, Layout)]
        shapes = [i for i in items if not _is_dtype(i) and not isinstance(i, Layout)]
        if len(dtypes) != 1 or len(shapes) != 1:
            raise NotAType(
                "a tensor has one element type and one shape", "write `Tensor[Float, (N, 3)]`"
            )
        shape = shapes[0]
        if isinstance(shape, str):
            raise NotAType(
                "a shape is a tuple", 'write `(N, 3)`, with `N = Dim("N")` above the function'
            )
        entries = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        dims = tuple(ANY_DIMS if e is Ellipsis or e == "..." else self.dim(e) for e in entries)
        if dims.count(ANY_DIMS) > 1:
            raise NotAType("`...` stands twice in a shape", "name the sizes on one side of it")
        if layouts and len(dims) < 3:
            raise NotAType(
                f"images have channels, height and width, and this has rank {len(dims)}",
                f"leave `{layouts[0].value}` out",
            )
        return TensorType(dims, dtypes[0], *layouts[-1:])

    def dim(self, value: Any) -> Dim:
        """Return the size that an object stands for in a shape. Raises NotAType."""
        number = literal(value)
        match value if number is None else number:
            case bool():
                pass
            case Dim():
                return value
            case int() if value >= 0:
                return Dim.of(value)
            case str() if value.isidentifier():
                return Dim.of(value)
            case str():
                return self.dim(evaluate(value, DimNames(self._namespace)))
            case typing.Any:
                return self.open_dim()
            case typing.TypeVar():
                return Dim.of(value.__name__)
            case _:
                pass
        raise NotAType(
            f"`{value!r}` is not a size",
            'sizes are integers, `N = Dim("N")` and arithmetic on them, and `Any`',
        )


def type_names(found: Iterable[Type]) -> tuple[TypeParam, ...]:
    """Return the named sizes in types and then their type variables, in order of first mention:
    what a function quantifies."""
    types = tuple(found)
    names: dict[TypeParam, None] = {}
    for dim in _each_dim(types):
        names |= dict.fromkeys(a for a in dim.atoms() if isinstance(a, DimVar))
    for ty in types:
        names |= dict.fromkeys(part for part in subtypes(ty) if isinstance(part, TypeVar))
    return tuple(names)


def _each_dim(found: Iterable[Type]) -> Iterator[Dim]:
    for ty in found:
        yield from dims(ty)


def _is_list(value: Any) -> bool:
    """Return whether an annotation is that of a list."""
    origin = typing.get_origin(value)
    return origin in SEQUENCES or LIBRARY_TYPES.get(origin) == LIST


def _stands_alone(value: Any) -> str | None:
    """Return the meaning of an annotation that cannot be a part of another; None if it can."""
    if isinstance(value, written.ModelAnnotation):
        return "a model"
    if isinstance(value, written.ParamsAnnotation):
        return "the parameters of a model"
    if value is written.Optimizer:
        return "an optimiser"
    return "an iterable" if (typing.get_origin(value) or value) in ITERABLES else None


def _without_elements(value: Any) -> Type:
    """Return the type of the prelude that a name alone stands for. Raises NotAType where it does
    not say what its elements are."""
    if value in LIBRARY_TYPES and not getattr(value, "__parameters__", ()):
        return AdtType(LIBRARY_TYPES[value])
    shown = LIBRARY_TYPES.get(value, str(value.__name__)).removeprefix(PRELUDE)
    raise NotAType("the type of its elements is missing", f"write `{shown}[Float]`")


_NAMED_TYPES: Final = (*SEQUENCES, *LIBRARY_TYPES)


def _type_variable(value: typing.TypeVar) -> Type:
    if is_size(value):
        return SizeType(Dim.of(value.__name__))
    if value.__bound__ is not None or value.__constraints__:
        why = f"`{value.__name__}` has a bound, which nothing would check"
        raise NotAType(why, _UNBOUNDED)
    return TypeVar(value.__name__)


def _is_dtype(item: Any) -> bool:
    return (
        isinstance(meaning(item), DType)
        or isinstance(item, DType)
        or (isinstance(item, type) and item in NUMBERS)
    )


def _dtype(item: Any) -> Any:
    ty = NUMBERS[item]
    assert isinstance(ty, TensorType)
    return ty.dtype
