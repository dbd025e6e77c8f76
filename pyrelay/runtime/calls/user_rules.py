"""Decorators that give a relay function a derivative of the user's own or put it under a policy;
they load no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar, final

from ...diagnostics.catalogue.language import WronglyDecorated
from ...diagnostics.diagnostic import CheckError
from ...ir.expr import Rule
from ...ir.intrinsics import Intrinsic
from ...translate.source.definition import (
    POLICIES,
    Definition,
    DefinitionKind,
    UserRules,
    meaning,
    policy_names,
)
from ...translate.source.residual import Residual
from .function import RelayFunction, Routine

P = ParamSpec("P")
R = TypeVar("R")


class _Decorator(Routine, ABC):
    """A decorator in a script, and a function of the language; `help` shows how it is called."""

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.__relay__: Final = intrinsic
        self.__name__: str = intrinsic.value
        self.__module__ = "pyrelay.relay"
        self.__doc__ = type(self).__call__.__doc__

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The callable in which `inspect` finds the signature."""
        return self.__call__

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a decorator, or the function that is decorated."""

    def __repr__(self) -> str:
        return f"<relay.{self.__name__}>"


@final
class CustomVjp(_Decorator):
    """`relay.custom_vjp`: a decorator in a script, and a function of the language."""

    def __init__(self) -> None:
        super().__init__(Intrinsic.CUSTOM_VJP)

    def __call__(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any]
    ) -> Callable[[RelayFunction[P, R]], RelayFunction[P, R]]:
        """Return a decorator that gives a relay function `f: A -> B` a derivative of its own.

        `fwd: A -> (B, R)` returns the value with whatever the backward function needs, and
        `bwd: (R, dB) -> dA` a cotangent for each parameter that holds floats, of the parameter's
        shape and dtype: one bare, several as a tuple. All three are relay functions, with the same
        static parameters; reverse mode calls the rules and looks no further into `f`. Raises
        CheckError for what is no relay function; the types are checked with the program.

        After `jax.custom_vjp` and `torch.autograd.Function`.

        >>> from pyrelay import Float, relay
        >>> @relay
        ... def clip_fwd(x: Float) -> tuple[Float, tuple[()]]:
        ...     return x, ()
        >>> @relay
        ... def clip_bwd(saved: tuple[()], g: Float) -> Float:
        ...     return relay.clamp(g, -1.0, 1.0)
        >>> @relay.custom_vjp(clip_fwd, clip_bwd)
        ... @relay
        ... def clip_gradient(x: Float) -> Float:
        ...     return x
        >>> relay.grad(clip_gradient)(3.0)
        tensor(1.)
        """
        return _decorator(Rule.CUSTOM_VJP, fwd, bwd)


@final
class CustomJvp(_Decorator):
    """`relay.custom_jvp`: a decorator in a script, and a function of the language."""

    def __init__(self) -> None:
        super().__init__(Intrinsic.CUSTOM_JVP)

    def __call__(
        self, rule: Callable[..., Any]
    ) -> Callable[[RelayFunction[P, R]], RelayFunction[P, R]]:
        """Return a decorator that gives a relay function `f: A -> B` a derivative of its own.

        `rule: (primals, tangents) -> (value, tangent)` has the type of `relay.jvp(f)`: it takes a
        tuple of the arguments and a tuple with a direction for each parameter that holds floats, of
        the parameter's shape and dtype, and must be linear in the directions. Forward mode calls
        it; reverse mode transposes it, at directions of zero. Both are relay functions, with the
        same static parameters. Raises CheckError for what is no relay function; the types are
        checked with the program.

        After `jax.custom_jvp`; for the transposition see Radul, Paszke, Frostig, Johnson and
        Maclaurin, "You only linearize once", 2023.

        >>> from pyrelay import Float, relay
        >>> @relay
        ... def safe_sqrt_jvp(primals: tuple[Float], tangents: tuple[Float]) -> tuple[Float, Float]:
        ...     root = safe_sqrt(primals[0])
        ...     return root, tangents[0] / (2.0 * relay.maximum(root, 0.25))
        >>> @relay.custom_jvp(safe_sqrt_jvp)
        ... @relay
        ... def safe_sqrt(x: Float) -> Float:
        ...     return relay.sqrt(x)
        >>> relay.grad(safe_sqrt)(0.0)
        tensor(2.)
        """
        return _decorator(Rule.CUSTOM_JVP, rule)


@final
class Checkpoint(_Decorator):
    """`relay.checkpoint`: a function of a script and of the language."""

    def __init__(self) -> None:
        super().__init__(Intrinsic.CHECKPOINT)

    def __call__(
        self, f: RelayFunction[P, R], policy: str | tuple[str, ...] | None = None
    ) -> RelayFunction[P, R]:
        """Return the same function, whose gradient computes again what it needs of it.

        The forward pass saves the arguments, and what the policy names: nothing for None, the
        results of products and convolutions for "products", or values by their names in the
        function. Values and gradients are those of `f`, random numbers from keys included. `f` is
        a relay function or a model definition; it must only compute. Stands above `@relay` as a
        decorator too. Raises CheckError for what is no relay function, and ValueError for what is
        no policy.

        After Chen et al., "Training deep nets with sublinear memory cost", 2016; `jax.checkpoint`
        and `torch.utils.checkpoint` are alike.
        """
        return _under_policy(Rule.CHECKPOINT, f, policy)


@final
class Autocast(_Decorator):
    """`relay.autocast`: a function of a script and of the language."""

    def __init__(self) -> None:
        super().__init__(Intrinsic.AUTOCAST)

    def __call__(self, f: RelayFunction[P, R], policy: str = "bfloat16") -> RelayFunction[P, R]:
        """Return a function of the same type that multiplies in a narrow dtype.

        Products, convolutions and attention round their float32 operands to `policy`, "bfloat16" or
        "float16", and add up in float32; reductions, losses, norms and all else compute in float32,
        and so do updates: parameters stay float32. Operators that only move or select elements do
        so in the narrow dtype between products. Arguments and results keep their dtypes, and
        float64 stays float64. It covers all functions that `f` calls, models included, and their
        derivatives. `f` is a relay function or a model definition. Stands above `@relay` as a
        decorator too. Raises CheckError for what is no relay function, and ValueError for what is
        no policy.

        After Micikevicius et al., "Mixed precision training", 2018; `torch.autocast` is alike.

        >>> import torch
        >>> from pyrelay import Float, Tensor, relay
        >>> @relay
        ... def area(x: Tensor[Float, (1,)], y: Tensor[Float, (1,)]) -> Float:
        ...     return x @ y
        >>> third = torch.tensor([1.0 / 3.0])
        >>> area(third, third), relay.autocast(area)(third, third)
        (tensor(0.1111), tensor(0.1113))
        """
        return _under_policy(Rule.AUTOCAST, f, policy)


def _under_policy(rule: Rule, f: RelayFunction[P, R], policy: object) -> RelayFunction[P, R]:
    """Return a relay function or a model definition under a transform with a policy."""
    definition = meaning(f)
    if not isinstance(definition, Definition | Residual):
        definition = _definition(f, rule, "takes")
    names = policy_names(rule, policy)
    if names is None:
        raise ValueError(f"a policy of `{rule.value}` is {POLICIES[rule]}, not {policy!r}")
    if isinstance(definition, Residual):
        function: Any = f
        return function.under_policy(rule, names)
    return f.ruled(definition, UserRules(rule, policy=names))


def _decorator(
    rule: Rule, *functions: Callable[..., Any]
) -> Callable[[RelayFunction[P, R]], RelayFunction[P, R]]:
    rules = tuple(_rule_function(f, rule) for f in functions)

    def decorate(function: RelayFunction[P, R]) -> RelayFunction[P, R]:
        if isinstance(meaning(function), Residual):
            _expect_of_texts(functions, rule)
            of_text: Any = function
            return of_text.under_rules(rule, functions)
        definition = _definition(function, rule, "stands above")
        return RelayFunction[P, R](definition.ruled(UserRules(rule, rules)))

    return decorate


def _rule_function(function: object, rule: Rule) -> Definition | Residual:
    """Return the definition of a rule of the user's. Raises CheckError."""
    found = meaning(function)
    return found if isinstance(found, Residual) else _definition(function, rule, "takes")


def _expect_of_texts(functions: Sequence[Callable[..., Any]], rule: Rule) -> None:
    """Stop at a rule for a function of a text that is no function of a text. Raises CheckError."""
    for each in functions:
        if not isinstance(meaning(each), Residual):
            name = getattr(each, "__name__", type(each).__name__)
            what = f"takes `{name}` for a function of a text"
            instead = f"write `{name}` in a text as well"
            raise CheckError(WronglyDecorated(f"relay.{rule.value}", what, instead))


def _definition(function: object, rule: Rule, what: str) -> Definition:
    """Return the definition of a relay function. Raises CheckError for anything else."""
    found = meaning(function)
    if isinstance(found, Definition) and found.kind is DefinitionKind.FUNCTION:
        return found
    name = getattr(function, "__name__", type(function).__name__)
    what = f"{what} `{name}`, which is no relay function"
    instead = f"decorate `{name}` with @relay"
    if isinstance(found, Definition):
        instead = (
            f"`{name}` is a model: call it in a relay function, with its model as `Model[...]`"
        )
    raise CheckError(WronglyDecorated(f"relay.{rule.value}", what, instead))
