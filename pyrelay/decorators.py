"""`@relay`, `@relay_model` and the `relay` namespace: what a user's program starts from.

`relay` is both the decorator and the namespace of operators and of functions over functions. The
objects here are thin shells that load neither torch nor triton; the first call brings in the
runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeVar, final

from . import annotations
from .diagnostics.catalogue.names import UnknownAttribute
from .diagnostics.diagnostic import CheckError, MissingNameError, Report
from .diagnostics.misspelt import nearest_in
from .diagnostics.source import NOWHERE
from .extension import declare
from .garbage import uncollected
from .ir.intrinsics import Intrinsic
from .ir.op import Effect, Gradient, Op, Sample, ShapeBehaviour, TypeRule
from .ir.types import DTYPES
from .operators.table import ALIASES, ALL, UNLISTED
from .prelude import MEMBERS
from .prelude.names import CONSTRUCTORS
from .prelude.values import List, Nat, Rose
from .runtime.calls.function import RelayFunction as RelayFunction
from .runtime.calls.function import RelayModel as RelayModel
from .runtime.calls.function import Routine
from .runtime.calls.user_rules import Autocast, Checkpoint, CustomJvp, CustomVjp
from .translate.source.decorated import decorated, expect_function
from .translate.source.definition import Definition, DefinitionKind, Implicit
from .translate.source.optimizers import MAKERS, Maker
from .translate.source.scope import MISSING
from .translate.subset.migration_hints import OF_NAMESPACES, WITHOUT

if TYPE_CHECKING:
    from inspect import Signature

    from .ir.declaration.lowering import Fused
    from .ir.module import Module

P = ParamSpec("P")
R = TypeVar("R")


class Operator(Routine):
    """An operator of the namespace: a name in `@relay` code, and a function on tensors."""

    def __init__(self, op: Op) -> None:
        self.__relay__: Final = op
        self.__name__: str = op.name
        self.__module__ = "pyrelay.relay"
        if type(self) is Operator:
            self.__doc__ = op.doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator to tensors, outside of a compiled program. Raises CheckError."""
        from .runtime.dispatch.eager import apply

        return apply(self.__relay__, args, kwargs)

    @property
    def __signature__(self) -> Signature:
        """The text that `help` and `inspect.signature` show."""
        from .ir.calls.op_signature import signature  # only help asks

        return signature(self.__relay__)

    def __repr__(self) -> str:
        return f"<operator {self.__name__}>"


@final
class Function(Routine):
    """A function of the namespace that is no operator: called from a script, that of `api` of the
    same name; in the language an intrinsic, or nothing."""

    def __init__(self, name: str, intrinsic: Intrinsic | None = None) -> None:
        self.__name__: str = name
        self.__module__ = "pyrelay.relay"
        if intrinsic is not None:
            self.__relay__: Final = intrinsic

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as a script does."""
        try:
            return self.__wrapped__(*args, **kwargs)
        except TypeError as error:
            raise (_of_call(error, f"relay.{self.__name__}") or error) from None

    @cached_property
    def __wrapped__(self) -> Callable[..., Any]:
        """The callable of a script, where `inspect` finds the signature."""
        with uncollected():
            from . import api  # brings in the runtime

        return getattr(api, self.__name__)

    @property
    def __doc__(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The text that `help` shows."""
        return self.__wrapped__.__doc__

    def __repr__(self) -> str:
        return f"<relay.{self.__name__}>"


@final
class OptimizerFunction(Routine):
    """A function of `relay.optim`: gives an optimiser, in a script and in `@relay` code."""

    def __init__(self, maker: Maker) -> None:
        self.__relay__: Final = maker
        self.__name__: str = maker.name
        self.__module__ = "pyrelay.relay.optim"
        self.__doc__ = maker.make.__doc__
        self.__wrapped__: Final = maker.make  # where `inspect` finds the signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return an optimiser. Raises ValueError for hyper-parameters that make no sense."""
        from .runtime.models.optim import optimizer_of  # brings in torch

        try:
            return optimizer_of(self.__relay__.make(*args, **kwargs))
        except TypeError as error:
            raise (_of_call(error, f"relay.optim.{self.__name__}") or error) from None

    def __repr__(self) -> str:
        return f"<relay.optim.{self.__name__}>"


def _of_call(error: TypeError, name: str) -> TypeError | None:
    """Return the error of a call that does not fit the signature of a function of the package; None
    for an exception from inside of it."""
    at, own = error.__traceback__, f"{name.rpartition('.')[2]}() got an unexpected keyword"
    if at is None or (at.tb_next is not None and not str(error).startswith(own)):
        return None
    reason = str(error).partition("() ")[2]
    keyword = reason.partition("unexpected keyword argument ")[2].strip("'")
    way = WITHOUT.get(keyword)
    return TypeError(f"{name}: {reason}{'' if way is None else f'; {way}'}")


@final
class Group:
    """A part of the namespace, such as `relay.random` or `relay.optim`."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        self._name: Final = name
        self.__dict__.update(members)

    def __repr__(self) -> str:
        return f"<relay.{self._name}>"

    def __dir__(self) -> list[str]:
        return sorted(name for name in self.__dict__ if not name.startswith("_"))

    def __getattr__(self, name: str) -> Any:
        raise _missing(self, f"relay.{self.__dict__.get('_name')}", name)


def _missing(namespace: object, owner: str, name: str) -> AttributeError:
    """Return the error for a name that a namespace does not have. Python asks for names with
    underscores on its own account."""
    if name.startswith("_"):
        return AttributeError(f"{owner} has no {name}", name=name, obj=None)
    near = nearest_in(namespace, name, f"{owner}.")
    instead = OF_NAMESPACES.get(name)
    return MissingNameError(UnknownAttribute(NOWHERE, f"`{owner}`", name, near, instead))


@final
class Namespace:
    """The decorator and namespace `relay`.

    `dir(relay)` lists what users call: operators, functions over functions and models, element
    types, the prelude's functions, and the groups `optim` and `random`. Operators that syntax or
    derivatives stand for can be named, as the text of a program does, and are not listed.
    """

    def __init__(self, members: dict[str, Any]) -> None:
        self.__dict__.update(members)

    def __dir__(self) -> list[str]:
        return sorted(
            n for n, v in self.__dict__.items() if getattr(v, "__relay__", None) not in UNLISTED
        )

    @property
    def __groups__(self) -> Sequence[str]:
        """The names of the groups."""
        return [n for n, v in self.__dict__.items() if isinstance(v, Group)]

    if TYPE_CHECKING:

        def __call__(self, function: Callable[P, R]) -> RelayFunction[P, R]:
            """Make a function of the language of an annotated Python function."""
            ...

    else:

        def __call__(self, *given, **options):
            """Make a function of the language of an annotated Python function.

            Parses it and refuses Python that is not the language; names and types are looked at
            when it is first called or checked. Raises CheckError.
            """
            return RelayFunction(
                _define(decorated(given, options, "relay"), DefinitionKind.FUNCTION)
            )

    def __repr__(self) -> str:
        return "<pyrelay.relay>"

    def __getattr__(self, name: str) -> Any:
        raise _missing(self, "relay", name)


def _relay_model(function: Callable[P, R]) -> RelayModel[P, R]:
    """Make the definition of a model of an annotated Python function.

    Operators and models that it calls without their weights get parameters, one set a call site.
    Raises CheckError for Python that is not the language.
    """
    return RelayModel(_define(function, DefinitionKind.MODEL))


if TYPE_CHECKING:
    # To mypy a definition is a RelayModel, and `Model[lenet]` is fine after a variable that is Any
    # (annotations.py). pyright wants a class there, so to pyright a definition is a class whose
    # call has the definition's signature.
    MYPY = False
    if MYPY:
        relay_model = _relay_model  # pyright: ignore[reportAssignmentType]
    else:

        class ModelDefinition(Generic[P, R]):
            """The definition of a model."""

            type: ClassVar[str]
            module: ClassVar[Module]

            def __new__(cls, *args: P.args, **kwargs: P.kwargs) -> R:
                """Call the model's one implicit instance, in `@relay` code."""
                ...

            @classmethod
            def check(cls, *, strict: bool = False) -> Report:
                """Check the definition and everything it reaches. Raises CheckError."""
                ...

            @classmethod
            def show(cls, stage: str = "typed") -> str:
                """Return the program at a stage."""
                ...

            @classmethod
            def explain(cls) -> str:
                """Return the kernels and regions of the definition."""
                ...

            @classmethod
            def diff(cls, before: str, after: str) -> str:
                """Return the difference of two stages, as a unified diff."""
                ...

        def relay_model(function: Callable[P, R]) -> type[ModelDefinition[P, R]]:
            """Make the definition of a model of an annotated Python function."""
            ...

else:

    def relay_model(*given, **options):  # noqa: D103  the docstring is that of the typed one
        return _relay_model(decorated(given, options, "relay_model"))

    relay_model.__doc__ = _relay_model.__doc__


def _define(function: Callable[..., Any], kind: DefinitionKind) -> Definition:
    plain = expect_function(function, "relay" if kind is DefinitionKind.FUNCTION else "relay_model")
    definition = Definition(plain, kind)
    try:
        definition.source  # noqa: B018  reads and checks the source now, while it is unchanged
    except CheckError as error:
        refused = _REFUSED.get()
        if refused is None:
            raise
        refused[definition] = error
    return definition


_REFUSED: Final = ContextVar["dict[Definition, CheckError] | None"]("refused", default=None)


@contextmanager
def collected_refusals() -> Generator[Mapping[Definition, CheckError]]:
    """Collect the mistakes that decorators refuse inside the block, instead of ending it: whoever
    checks a file wants to know all that is wrong with it. What is refused raises the same when it
    is used."""
    refused: dict[Definition, CheckError] = {}
    token = _REFUSED.set(refused)
    try:
        yield refused
    finally:
        _REFUSED.reset(token)


_LINALG: Final = (
    *("cholesky", "det", "eigh", "inv", "matmul", "pinv", "qr", "slogdet", "solve"),
    *("solve_triangular", "svd"),
)
_RANDOM: Final = (
    *("bernoulli", "categorical", "exponential", "fold_in", "gumbel", "normal", "uniform"),
)


def operator(
    *,
    type_rule: TypeRule | None = None,
    grad: Gradient | None = None,
    samples: Iterable[Sample],
    shape: ShapeBehaviour = ShapeBehaviour.FIXED,
    effect: Effect = Effect.NONE,
    fused: Callable[..., Any] | Fused | None = None,
) -> Callable[[Callable[..., Any]], Operator]:
    """Make an operator of a function of torch tensors.

    Positional parameters are operands, keyword-only ones static attributes. `type_rule` returns the
    type of the result from those of the operands (`pyrelay.ir.rules` has the vocabulary); `grad`
    one cotangent for each operand in operators of `relay`, None for an operator without derivative.
    `samples` are inputs on which a test can try the declaration.

    `fused` defines the operator inside a kernel, which otherwise ends at it: the element of the
    result at a place. It is called as `fused(k, place, *operands, **attributes)`, with the
    arithmetic `k` (`ir.declaration.elements.Elements`), an `ir.declaration.elements.Place`, and
    operands as sources of elements; `x(*place.index)` is that of an operand of the same shape.
    `MadeOf` and `Scatter` of `ir.declaration.lowering` are the other two forms; a `MadeOf` implies
    the type rule and the derivative, if they are left out.

    Raises TypeError for `*args`, `**kwargs`, and without a type rule that something implies.
    """

    def decorate(function: Callable[..., Any]) -> Operator:
        return Operator(
            declare(
                function,
                type_rule=type_rule,
                grad=grad,
                samples=samples,
                shape=shape,
                effect=effect,
                fused=fused,
            )
        )

    return decorate


def implicit(name: str, annotation: Any, default: Any = MISSING) -> Any:
    """Declare an implicit parameter: a value that functions mention by what this returns, and that
    their callers supply.

    A function that mentions it, or calls a function that does, takes the value as a keyword
    argument called `name`, of the type that is annotated. In compiled code a call that does not
    give it passes on the value that the function around has; a script gives it, unless there is a
    `default`. Raises ValueError for a name that is no identifier.

    >>> from pyrelay import Float, relay
    >>> temperature = relay.implicit("temperature", Float)
    >>> @relay
    ... def soften(x: Float) -> Float:
    ...     return x / temperature
    >>> soften(3.0, temperature=2.0)
    tensor(1.5000)
    """
    if not name.isidentifier():
        raise ValueError(f"an implicit parameter is given by name, and {name!r} is none")
    return Implicit(name, annotation, default)


@final
class Equality(Operator):
    """`relay.equal`: of tensors and numbers element by element, as an operator; of data, tuples,
    lists and strings, whether the whole values are equal."""

    def __call__(self, input: Any, other: Any) -> Any:  # noqa: A002  torch's own name
        """Compare tensors element by element, other values as wholes. Raises RunError for what is
        not compared, such as functions."""
        if _is_number(input) and _is_number(other):
            return super().__call__(input, other)
        from .runtime.values.equality import values_equal  # brings in torch

        return values_equal(input, other)


@final
class StopGradient(Operator):
    """`relay.stop_gradient`: of a tensor or a number as an operator, of other values as wholes."""

    def __call__(self, input: Any) -> Any:  # noqa: A002  torch's own name
        """Return a value of any type, through which no gradient flows. In data, tuples, lists
        and records of parameters, every tensor becomes a constant of differentiation."""
        if hasattr(input, "__torch_function__"):
            return super().__call__(input)
        from . import api  # brings in the runtime

        return api.stop_gradient(input)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__torch_function__") or isinstance(value, bool | int | float)


def _show(value: Any) -> str:
    """Return a value as text, like `repr`, at any depth."""
    from .runtime.values.text import value_text  # brings in torch

    return value_text(value)


def _members() -> dict[str, Any]:
    operators = {op.name: Operator(op) for op in ALL}
    found: dict[str, Any] = dict(operators)
    found |= {alias: operators[name] for alias, name in ALIASES.items()}
    found |= {i.value: Function(i.value, i) for i in Intrinsic if i.value not in operators}
    found["param"] = Function("param", Intrinsic.PARAM)
    found |= {name: getattr(annotations, _DTYPE_NAMES.get(name, name)) for name in DTYPES}
    random = {name: operators[name] for name in _RANDOM}
    random |= {"key": operators["key"], "split": operators["random_split"]}
    found["random"] = Group("random", random)
    found["linalg"] = Group("linalg", {name: operators[name] for name in _LINALG})
    found["optim"] = Group("optim", {maker.name: OptimizerFunction(maker) for maker in MAKERS})
    found["operator"], found["implicit"] = operator, implicit
    found["custom_vjp"], found["custom_jvp"] = CustomVjp(), CustomJvp()
    found["checkpoint"], found["autocast"] = Checkpoint(), Autocast()
    found |= {name: Function(name) for name in ("parse", "function", "specialise")}
    found["show"] = _show
    found["equal"] = Equality(operators["equal"].__relay__)
    found["stop_gradient"] = StopGradient(operators["stop_gradient"].__relay__)
    classes = {c.__name__: c for c in (List, *CONSTRUCTORS, Nat)}
    return {**MEMBERS, **classes, "Tree": Rose, **found}


_DTYPE_NAMES: Final = {"bool": "bool_"}

relay: Final = Namespace(_members())
