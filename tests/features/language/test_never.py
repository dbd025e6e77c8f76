"""Data types without constructors: named aliases of `Never`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, Never, TypeVar, assert_never

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, relay, uint16

typing_extensions = pytest.importorskip("typing_extensions")

T = TypeVar("T")
n = TypeVar("n", bound=Dim)
N = Dim("N")

Void: Any = typing_extensions.TypeAliasType("Void", Never)
Other: Any = typing_extensions.TypeAliasType("Other", Never)
Gone: Any = typing_extensions.TypeAliasType("Gone", Never, type_params=(T,))
Sized: Any = typing_extensions.TypeAliasType("Sized", Never, type_params=(n,))


@dataclass(frozen=True)
class Ok(Generic[T]):
    value: T


@dataclass(frozen=True)
class Err(Generic[T]):
    error: Void
    rest: T


Result = Ok[T] | Err[T]


@relay
def absurd(x: Void) -> Float:
    assert_never(x)


@relay
def value(r: Result[Float]) -> Float:
    match r:
        case Ok(v):
            return v * v
        case Err(e, _):
            assert_never(e)


@relay
def joined(r: Result[Float]) -> Float:
    match r:
        case Ok(v):
            y = v
        case Err(e, _):
            y = assert_never(e)
    return y * y


@relay
def chosen(r: Result[Float]) -> Float:
    return r.value * r.value if isinstance(r, Ok) else assert_never(r.error)


def test_the_type_has_no_constructors() -> None:
    assert "type Void {\n}" in absurd.show("typed")
    assert absurd.type == "(x: Void) -> Float"


@pytest.mark.parametrize("f", [value, joined, chosen])
def test_a_match_of_it_needs_no_case(f: Any) -> None:
    x = torch.tensor(3.0)
    assert f(Ok(x)) == 9.0 == f.interpret(Ok(x))
    assert relay.grad(f)(Ok(x)) == Ok(torch.tensor(6.0))


def test_a_class_that_holds_one_is_a_case_all_the_same() -> None:
    @relay
    def partial(r: Result[Float]) -> Float:
        match r:
            case Ok(v):
                return v

    with pytest.raises(CheckError, match="no case matches `Err"):
        partial.check()


def test_aliases_are_types_of_their_own() -> None:
    @relay
    def other(x: Other) -> Float:
        assert_never(x)

    @relay
    def mixed(x: Void) -> Float:
        return other(x)

    with pytest.raises(CheckError, match="`other` takes Other as `x`"):
        mixed.check()


def test_they_have_type_parameters() -> None:
    @relay
    def passed(x: Gone[Int], y: Sized[3], z: Void | None) -> Gone[Int]:
        return x

    @relay
    def floats(x: Gone[Float]) -> Float:
        assert_never(x)

    @relay
    def mixed(x: Gone[Int]) -> Float:
        return floats(x)

    @relay
    def sized(x: Sized[N]) -> Sized[2 * N]:
        return x

    assert passed.type == "(x: Gone[Int], y: Sized[3], z: Void | None) -> Gone[Int]"
    with pytest.raises(CheckError, match=r"`floats` takes Gone\[Float\]"):
        mixed.check()
    with pytest.raises(CheckError, match=r"Sized\[2\*N\]"):
        sized.check()


def test_values_that_hold_one_are_compared_and_mapped() -> None:
    @relay
    def same(r: Result[Float], s: Result[Float]) -> bool:
        return relay.equal(r, s)

    @relay
    def doubled(r: Result[Float]) -> Result[Float]:
        return relay.tree_map(lambda x: x * 2.0, r)

    assert same(Ok(1.0), Ok(1.0))
    assert not same(Ok(1.0), Ok(2.0))
    assert doubled(Ok(1.5)) == Ok(torch.tensor(3.0))


def test_no_value_is_of_one() -> None:
    with pytest.raises(RunError, match="`x` is Void"):
        absurd(3)
    with pytest.raises(RunError, match=r"`r.error` is Void"):
        value(Err(Ok(1), 2.0))


@relay
def optional(x: Void | None, y: Float) -> Float:
    return y if x is None else assert_never(x)


def test_an_alias_that_is_made_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert optional(None, 2.0) == 2.0
    monkeypatch.setitem(globals(), "Void", Other)
    assert optional.type == "(x: Other | None, y: Float) -> Float"
    assert optional(None, 2.0) == 2.0


def test_gradients_of_gradients_meet_it() -> None:
    @relay
    def slope(x: Float) -> Float:
        return relay.grad(lambda y: value(Ok(y)))(x)

    assert relay.grad(slope)(3.0) == 2.0


def test_a_text_may_fail_there_at_any_order() -> None:
    found = relay.parse(
        '#[pyrelay = "1"]\n'
        "def @f(%x: float32) -> float32 { let %y: float32 = match? (%x) { }; %y * %x }"
    )["f"]
    for f in (found, relay.grad(found), relay.grad(relay.grad(found))):
        with pytest.raises(RunError, match="no case matches the value"):
            f(torch.tensor(1.0))


def test_a_number_that_is_known_is_a_size() -> None:
    @relay
    def grown(x: Tensor[Float, (N,)], k: Literal[3]) -> Tensor[Float, (N + 3,)]:
        return relay.cat((x, relay.zeros((k,))))

    assert grown(torch.ones(2), 3).shape == (5,)
    with pytest.raises(RunError):
        grown(torch.ones(2), 4)


def test_wide_unsigned_integers_are_passed_on() -> None:
    @relay
    def same(x: Tensor[uint16, (N,)]) -> Tensor[uint16, (N,)]:
        return x

    x = torch.ones(3, dtype=torch.uint16)
    assert torch.equal(same(x), x)
