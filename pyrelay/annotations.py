"""Annotations of signatures: `Tensor[Float, (N, 10)]`, `Float`, `Dim("N")`, `Fn`, `Ref`,
`Model`, `Params`, `Optimizer`.

For stock type checkers `Tensor` is `Annotated` and an element type is `Any`, so annotated programs
pass pyright and mypy. At run time an annotation is a small record that `translate.types.annotation`
reads as a type of the IR. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Union, cast, final

from .dataclass import dataclass
from .ir import dims as ir_dims
from .ir import types as ir_types


class Joinable:
    """An annotation that may be joined to others by `|`, as in `Float | None`."""

    __slots__ = ()

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007  this is what the operator means

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007  this is what the operator means


@final
@dataclass(frozen=True, slots=True)
class TensorAnnotation(Joinable):
    """A tensor as it is annotated; the two arguments of `Tensor[...]` in either order."""

    items: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"Tensor[{', '.join(map(_written, self.items))}]"


@final
@dataclass(frozen=True, slots=True)
class FnAnnotation(Joinable):
    """A function as it is annotated: the parameters, and the result."""

    params: tuple[Any, ...]
    result: Any

    def __repr__(self) -> str:
        return f"Fn[[{', '.join(map(_written, self.params))}], {_written(self.result)}]"


@final
@dataclass(frozen=True, slots=True)
class ModelAnnotation:
    """A model as it is annotated; `definition` is the decorated function, None for any model."""

    definition: Any

    def __repr__(self) -> str:
        return "Model" if self.definition is None else f"Model[{self.definition.__name__}]"


@final
@dataclass(frozen=True, slots=True)
class ParamsAnnotation:
    """A record of a model's parameters as it is annotated; `definition` is the decorated
    function."""

    definition: Any


@final
class ElementType(Joinable):
    """An element type. Alone it annotates a scalar; `Float[Tensor, "n 3"]` is read as well."""

    def __init__(self, name: str, dtype: ir_types.DType) -> None:
        self.name: Final = name
        self.__relay__: Final = dtype

    def __getitem__(self, items: Any) -> TensorAnnotation:
        """Return the tensor annotation in jaxtyping's notation."""
        given = items if isinstance(items, tuple) else (items,)
        shapes = (tuple(i.split()) if isinstance(i, str) else i for i in given if i is not Tensor)
        return TensorAnnotation((self, *shapes))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


@final
@dataclass(frozen=True, slots=True)
class RefAnnotation(Joinable):
    """A cell as it is annotated: `Ref[Float]`."""

    content: Any

    def __repr__(self) -> str:
        return f"Ref[{_written(self.content)}]"


@final
@dataclass(frozen=True, slots=True)
class BatchAnnotation(Joinable):
    """Values side by side as they are annotated: the type of each, and the sizes of the batch."""

    element: Any
    sizes: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"Batch[{_written(self.element)}, {', '.join(map(_written, self.sizes))}]"


def _written(part: Any) -> str:
    """Return a part of an annotation as it is written: a type, a size or a shape."""
    match part:
        case ir_dims.Dim():
            return str(part)
        case tuple():
            parts = [_written(p) for p in cast("tuple[Any, ...]", part)]
            return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        case ir_types.Layout():
            return part.value
        case _ if part is ...:
            return "..."
        case _ if part is Any:
            return "Any"
        case _ if isinstance(part, type) and not hasattr(part, "__args__"):
            return part.__name__
        case _:
            return repr(part)


class Optimizer:
    """An optimiser in an annotation, and what the optimisers of `relay.optim` are."""

    lr: float

    if TYPE_CHECKING:  # `runtime.models.optim` has them, with torch

        def state_dict(self, model: Any) -> dict[str, Any]:
            """Return its state for a model, to be saved."""
            ...

        def load_state_dict(self, model: Any, state: Mapping[str, Any]) -> None:
            """Go on with a model where `state_dict` left off. Raises RunError."""
            ...


if TYPE_CHECKING:
    from collections.abc import Callable as Fn  # pyright: ignore[reportUnusedImport]
    from typing import Annotated as Batch  # pyright: ignore[reportUnusedImport]
    from typing import Annotated as Tensor

    T = TypeVar("T")

    class Ref(Generic[T]):
        """A mutable cell."""

        value: T

    class Dim(ir_dims.Dim):  # pyright: ignore[reportGeneralTypeIssues]  final in the IR
        """A named size."""

        def __init__(self, name: str) -> None: ...

    Float = Any
    Int = Any
    Bool = Any
    bool_ = Any
    uint8 = Any
    uint16 = Any
    uint32 = Any
    uint64 = Any
    int8 = Any
    int16 = Any
    int32 = Any
    int64 = Any
    float16 = Any
    bfloat16 = Any
    float32 = Any
    float64 = Any
    NHWC = Any

    # `Model[lenet]` has a function where type checkers want a type. mypy takes anything after a
    # variable that is Any; pyright wants a class, which `relay_model` gives it (decorators.py).
    MYPY = False
    if MYPY:
        Model: Any  # pyright: ignore[reportRedeclaration]
        Params: Any  # pyright: ignore[reportRedeclaration]
    else:
        from typing import Self

        from typing_extensions import TypeVar as TypeVarWithDefault

        D = TypeVarWithDefault("D", default=Any)

        class Model(Generic[D]):
            """A model: parameters and state of a `@relay_model` definition."""

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                """Run the model."""

            def __getattr__(self, name: str) -> Any: ...

        class Params(Mapping[str, Any], Generic[D]):
            """The parameters of a model, or their gradient, as a value."""

            def norm(self) -> Any:
                """Return the Euclidean norm of all tensors together."""

            def __add__(self, other: Any) -> Self: ...
            def __radd__(self, other: Any) -> Self: ...
            def __sub__(self, other: Any) -> Self: ...
            def __mul__(self, other: Any) -> Self: ...
            def __rmul__(self, other: Any) -> Self: ...
            def __truediv__(self, other: Any) -> Self: ...
            def __neg__(self) -> Self: ...

else:

    class Tensor:
        """A tensor in an annotation: `Tensor[Float, (N, 3)]`, or the shape first."""

        def __class_getitem__(cls, items: Any) -> TensorAnnotation:
            return TensorAnnotation(items if isinstance(items, tuple) else (items,))

    class Batch:
        """Many values side by side in an annotation: `Batch[Point, N]`, an instance of `Point` with
        a dim more in each tensor; `Batch[Point, N, M]` of `N` rows of `M`."""

        def __class_getitem__(cls, items: Any) -> BatchAnnotation:
            element, *sizes = items
            return BatchAnnotation(element, tuple(sizes))

    class Fn:
        """A function in an annotation: `Fn[[A, B], C]`."""

        def __class_getitem__(cls, items: Any) -> FnAnnotation:
            params, result = items
            return FnAnnotation(tuple(params), result)

    class Ref:
        """A mutable cell, made by `relay.ref(v)`; in an annotation `Ref[Float]`."""

        def __class_getitem__(cls, content: Any) -> RefAnnotation:
            return RefAnnotation(content)

    def Dim(name: str) -> ir_dims.Dim:  # noqa: N802  reads as a type in annotations
        """Return a named size, for shapes: `N = Dim("N")`, then `(N, 2 * N + 1)`.

        The same name means the same size within one signature.

        >>> Dim("N") + 1
        Dim(N + 1)
        """
        if not name.isidentifier():
            raise ValueError(f"a size is named like a variable, not {name!r}")
        return ir_dims.Dim.of(name)

    class Model:
        """A model in an annotation: `Model[lenet]`, or `Model` alone."""

        def __class_getitem__(cls, definition: Any) -> ModelAnnotation:
            return ModelAnnotation(definition)

    class Params:
        """A record of a model's parameters in an annotation: `Params[lenet]`."""

        def __class_getitem__(cls, definition: Any) -> ParamsAnnotation:
            return ParamsAnnotation(definition)

    Float = ElementType("Float", ir_types.float32)
    Int = ElementType("Int", ir_types.int64)
    Bool = ElementType("Bool", ir_types.bool_)
    bool_ = ElementType("bool_", ir_types.bool_)
    uint8 = ElementType("uint8", ir_types.uint8)
    uint16 = ElementType("uint16", ir_types.TEXT_DTYPES["uint16"])
    uint32 = ElementType("uint32", ir_types.TEXT_DTYPES["uint32"])
    uint64 = ElementType("uint64", ir_types.TEXT_DTYPES["uint64"])
    int8 = ElementType("int8", ir_types.int8)
    int16 = ElementType("int16", ir_types.int16)
    int32 = ElementType("int32", ir_types.int32)
    int64 = ElementType("int64", ir_types.int64)
    float16 = ElementType("float16", ir_types.float16)
    bfloat16 = ElementType("bfloat16", ir_types.bfloat16)
    float32 = ElementType("float32", ir_types.float32)
    float64 = ElementType("float64", ir_types.float64)
    NHWC = ir_types.Layout.NHWC
