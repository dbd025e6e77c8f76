"""Which implementation a call gets: the keys that are asked first, exact, catch-all, fallback."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrelay import dispatch, relay

A, B = dispatch.mode("A"), dispatch.mode("B")
ON_CPU = ("cpu", "float32", "float")


def implementation(*_: Any, **__: Any) -> Any:
    """Stand for any implementation."""


def names(entries: tuple[str, ...], keys: tuple[Any, ...]) -> list[str]:
    """Register entries written `exact cpu float`, `catch-all`, `fallback A`; return which of them a
    call of tanh with the keys asks, in order."""
    by_name = {"A": A, "B": B}
    with ExitStack() as stack:
        made = {}
        for entry in entries:
            kind, *words = entry.split()
            given_keys = [by_name.get(w, w) for w in words]
            if kind == "fallback":
                registration = dispatch.fallback(given_keys[0], implementation)
            else:
                registration = dispatch.register("tanh", given_keys, implementation)
            made[stack.enter_context(registration)] = entry
        return [made[r] for r in dispatch.implementations("tanh", keys)]


PRECEDENCE = [
    # One key: exact, then catch-all, then fallback.
    (("exact cpu", "catch-all", "fallback cpu"), ON_CPU),
    (("catch-all", "fallback cpu"), ON_CPU),
    (("exact cpu", "fallback cpu"), ON_CPU),
    # Modes before devices before dtypes before their classes.
    (("exact A", "exact cpu", "exact float32", "exact float"), (A, *ON_CPU)),
    (("fallback A", "fallback cpu", "fallback float32", "fallback float"), (A, *ON_CPU)),
    # The mode that is given first, which is the one included last, before the other.
    (("exact A", "exact B"), (A, B, *ON_CPU)),
    (("exact B", "exact A"), (B, A, *ON_CPU)),
    # More keys before fewer, if they begin alike.
    (("exact cpu float32", "exact cpu float", "exact cpu", "exact float"), ON_CPU),
    (("exact A cpu float", "exact A cpu", "exact A float", "exact A"), (A, *ON_CPU)),
    # A fallback for an earlier key before an exact one for a later key: a mode sees every operator.
    (("fallback A", "exact cpu", "fallback cpu"), (A, *ON_CPU)),
    (("exact A", "fallback A", "exact cpu float", "exact float", "fallback float"), (A, *ON_CPU)),
    # A catch-all behind all exact ones, before all fallbacks.
    (("exact A", "exact cpu", "exact float", "catch-all", "fallback A"), (A, *ON_CPU)),
    (("exact float", "catch-all", "fallback A", "fallback cpu"), (A, *ON_CPU)),
]


@pytest.mark.parametrize(("entries", "keys"), PRECEDENCE)
def test_implementations_are_asked_in_this_order_however_they_were_registered(
    entries: tuple[str, ...], keys: tuple[Any, ...]
) -> None:
    for order in list(permutations(entries))[:24]:
        assert names(order, keys) == list(entries)


@pytest.mark.parametrize(
    "entry", ["exact cuda", "exact half", "exact B", "exact cpu half", "exact A cuda", "fallback B"]
)
def test_an_implementation_for_a_key_that_the_call_has_not_is_never_asked(entry: str) -> None:
    assert names((entry, "exact cpu"), (A, *ON_CPU)) == ["exact cpu"]


def test_an_implementation_of_one_operator_is_not_asked_for_another() -> None:
    with dispatch.register(relay.exp, (), implementation):
        assert dispatch.implementations("tanh", ON_CPU) == ()
        assert len(dispatch.implementations("exp", ON_CPU)) == 1


KEYS = st.sampled_from([A, B, "cpu", "cuda", "float32", "float", "int"])


@given(
    entries=st.lists(st.frozensets(KEYS, min_size=1, max_size=3), unique=True, max_size=6),
    fallbacks=st.frozensets(KEYS, max_size=3),
    catch_all=st.booleans(),
    modes=st.permutations([A, B]),
)
def test_the_order_is_total_and_obeys_the_three_rules(
    entries: list[frozenset[Any]], fallbacks: frozenset[Any], catch_all: bool, modes: list[Any]
) -> None:
    call = (*modes, "cpu", "float32", "float")
    position = {k: i for i, k in enumerate(call)}
    with ExitStack() as stack:
        exact = {
            stack.enter_context(dispatch.register("tanh", k, implementation)): k for k in entries
        }
        column = {stack.enter_context(dispatch.fallback(k, implementation)): k for k in fallbacks}
        whole = dispatch.register("tanh", (), implementation) if catch_all else None
        if whole is not None:
            stack.enter_context(whole)
        chain = dispatch.implementations("tanh", call)
    expected = {r for r, k in exact.items() if k <= set(call)}
    expected |= {r for r, k in column.items() if k in call}
    assert set(chain) == expected | ({whole} if whole is not None else set())
    for before, after in pairwise(chain):
        if before is whole:
            assert after in column
        elif after is whole:
            assert before in exact
        elif before in exact and after in exact:
            first = min(exact[before] ^ exact[after], key=lambda k: position.get(k, 99))
            assert first in exact[before]
        elif before in column and after in exact:
            assert whole is None
            assert position[column[before]] < min(position[k] for k in exact[after])
        elif before in exact and after in column and whole is None:
            assert min(position[k] for k in exact[before]) <= position[column[after]]
        elif before in column and after in column:
            assert position[column[before]] < position[column[after]]
