"""Registering implementations: what users of the table call, and what they may get wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, overload

from ..diagnostics.catalogue.dispatch import (
    AlreadyRegistered,
    NoOperator,
    NotRegistered,
    WrongImplementation,
)
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.misspelt import nearest
from ..ir.op import Op, ShapeBehaviour
from ..operators.table import ALIASES, BY_NAME
from .keys import Key, key_of, keys_of
from .registry import REGISTRY, Implementation, Registration, Table, shown

F = TypeVar("F", bound=Implementation)


@overload
def register(op: Any, keys: Any, *, boxed: bool = ..., replace: bool = ...) -> Callable[[F], F]: ...


@overload
def register(
    op: Any, keys: Any, impl: Implementation, *, boxed: bool = ..., replace: bool = ...
) -> Registration: ...


def register(
    op: Any,
    keys: Any,
    impl: Implementation | None = None,
    *,
    boxed: bool = False,
    replace: bool = False,
) -> Any:
    """Let calls of an operator that have all of `keys` run `impl` instead; with no keys, all calls.

    `op` is an operator (`relay.tanh`, one that `@relay.operator` made) or its name. `keys` is a key
    or several. `impl` is called with the operands in order and the attributes by name, a factory's
    also with `device`; with `boxed`, with one `OperatorCall`. Its result must have the type that
    the operator's would have, in storage of its own or of an operand, and it must not write into
    its operands. The derivative stays that of the operator.

    Returns the registration, which `with` takes back at the end of a block and `remove` at any
    time; without `impl` a decorator. Raises CheckError for what is no operator, no key or no
    implementation, and for keys that are taken, unless `replace` says to.
    """
    operator, found = operator_of(op), keys_of(keys)
    if impl is None:
        return _decorator(operator, found, boxed=boxed, replace=replace)
    return _add(operator, found, impl, boxed=boxed, replace=replace)


@overload
def fallback(key: Any, *, replace: bool = ...) -> Callable[[F], F]: ...


@overload
def fallback(key: Any, impl: Implementation, *, replace: bool = ...) -> Registration: ...


def fallback(key: Any, impl: Implementation | None = None, *, replace: bool = False) -> Any:
    """Let calls of any operator that have `key`, and no implementation that comes before, run
    `impl`, which gets the call as one `OperatorCall`. Otherwise like `register`."""
    found = (key_of(key),)
    if impl is None:
        return _decorator(None, found, boxed=True, replace=replace)
    return _add(None, found, impl, boxed=True, replace=replace)


def unregister(op: Any, keys: Any) -> None:
    """Take out the implementation for exactly these keys of an operator; with None for the operator
    the fallback. Raises CheckError where there is none."""
    operator, found = None if op is None else operator_of(op), keys_of(keys)

    def edit(registrations: Sequence[Registration]) -> Iterable[Registration]:
        same = [r for r in registrations if _is_for(r, operator, found)]
        if not same:
            others = [r.keys for r in registrations if r.operator is operator]
            raise CheckError(
                NotRegistered(_named(operator), shown(found), tuple(map(shown, others)))
            )
        return [r for r in registrations if r not in same]

    REGISTRY.change(edit)


def table() -> Table:
    """Return all registrations, in the order in which they were made; printed, they are a table."""
    return REGISTRY.table


def implementations(op: Any, keys: Any) -> tuple[Registration, ...]:
    """Return the implementations of an operator for a call with exactly these keys, in the order in
    which each may call the next. Modes come in the order given. Raises CheckError."""
    given = keys if isinstance(keys, tuple | list) else (keys,)
    found = dict.fromkeys(key_of(k) for k in given)
    return REGISTRY.table.chain(operator_of(op), tuple(sorted(found, key=lambda k: k.kind)))


def operator_of(given: Any) -> Op:
    """Return the operator that a user means. Raises CheckError."""
    found = getattr(given, "__relay__", given)
    if isinstance(found, Op):
        return found
    if isinstance(given, str):
        name = ALIASES.get(given, given)
        if name in BY_NAME:
            return BY_NAME[name]
        help_ = "operators are named as in `relay`; one of your own is given as it stands"
        raise CheckError(NoOperator(f"{given!r}", nearest(given, (*BY_NAME, *ALIASES)), help_))
    named = f"`{given.__name__}`" if hasattr(given, "__name__") else repr(given)
    help_ = "give an operator, such as `relay.tanh`, or its name"
    if found is not given:
        help_ = "only operators are dispatched: " + help_
    elif callable(given):
        help_ += "; `@relay.operator` makes one of a function of tensors"
    raise CheckError(NoOperator(named, None, help_))


def _decorator(
    operator: Op | None, keys: tuple[Key, ...], *, boxed: bool, replace: bool
) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        _add(operator, keys, function, boxed=boxed, replace=replace)
        return function

    return decorate


def _add(
    operator: Op | None,
    keys: tuple[Key, ...],
    implementation: Implementation,
    *,
    boxed: bool,
    replace: bool,
) -> Registration:
    made = Registration(operator, keys, implementation, boxed, _place(implementation))
    _check(made)

    def edit(registrations: Sequence[Registration]) -> Iterable[Registration]:
        same = [r for r in registrations if _is_for(r, operator, keys)]
        if same and not replace:
            it = f"`{same[0].name}`, {same[0].place}"
            raise CheckError(AlreadyRegistered(_named(operator), shown(keys), it))
        return [*(r for r in registrations if r not in same), made]

    REGISTRY.change(edit)
    return made


def _is_for(registration: Registration, operator: Op | None, keys: tuple[Key, ...]) -> bool:
    return registration.operator is operator and set(registration.keys) == set(keys)


def _named(operator: Op | None) -> str:
    return "every operator" if operator is None else f"`{operator.name}`"


def _check(made: Registration) -> None:
    """Stop at what cannot be called as implementations are; what has no signature is believed."""
    wanted, args, named = _form(made)
    operator = _named(made.operator)
    if not callable(made.implementation):
        name = repr(made.implementation)
        raise CheckError(WrongImplementation(operator, name, "it is no function", wanted))
    try:
        signature = inspect.signature(made.implementation)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **dict.fromkeys(named))
    except TypeError as error:
        raise CheckError(
            WrongImplementation(operator, f"`{made.name}`", str(error), wanted)
        ) from None


def _form(made: Registration) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return how an implementation is called: as text, its arguments by position, and by name."""
    if made.boxed or made.operator is None:
        return "f(call)", ("call",), ()
    operands = [p.name for p in made.operator.operands]
    named = [p.name for p in made.operator.attributes]
    if made.operator.shape is ShapeBehaviour.FACTORY:
        named.append("device")
    text = ", ".join((*operands, *(f"{n}={n}" for n in named)))
    return f"f({text})", operands, named


_UNKNOWN_PLACE: Final = "not written in Python"


def _place(implementation: Implementation) -> str:
    """Return where an implementation was written: the name of the file, and the line."""
    function = inspect.unwrap(getattr(implementation, "__relay__", implementation))
    code = getattr(getattr(function, "function", function), "__code__", None)
    if code is None:
        return _UNKNOWN_PLACE
    return f"at {Path(code.co_filename).name}:{code.co_firstlineno}"
