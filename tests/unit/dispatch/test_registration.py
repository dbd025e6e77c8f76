"""The table: what is registered, listed, replaced and taken out, and what is refused."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import pyrelay
from pyrelay import CheckError, dispatch, relay
from pyrelay.operators.primitive import math as math_ops


def same(x: Any) -> Any:
    """Return the operand."""
    return x


def other(x: Any) -> Any:
    """Return the operand too."""
    return x


def test_an_operator_is_given_as_it_stands_by_name_or_by_its_declaration() -> None:
    with dispatch.register("mul", "cpu", lambda a, b: a * b) as made:
        assert made.operator is not None
        assert made.operator.name == "multiply"
    for given in (relay.tanh, "tanh", math_ops.tanh):
        with dispatch.register(given, "cpu", same) as made:
            assert made.operator is math_ops.tanh
            assert list(dispatch.table()) == [made]
    assert len(dispatch.table()) == 0


def test_a_key_is_given_by_name_as_a_key_or_as_an_element_type() -> None:
    for given, name in [
        ("cuda", "cuda"),
        (dispatch.CUDA, "cuda"),
        (dispatch.device("npu"), "npu"),
        (relay.float16, "float16"),
        (pyrelay.bool_, "bool"),
        (dispatch.HALF, "half"),
        ("int", "int"),
    ]:
        with dispatch.register(relay.tanh, given, same) as made:
            assert [k.name for k in made.keys] == [name]
    with dispatch.register(relay.tanh, {"float", "cpu"}, same) as made:
        assert [k.name for k in made.keys] == ["cpu", "float"]
    assert dispatch.device("npu") is dispatch.device("npu")
    assert dispatch.mode("Tracing") is not dispatch.mode("Tracing")


def test_as_a_decorator_it_gives_the_function_back() -> None:
    decorated = dispatch.register(relay.tanh, ("cpu", "float"))(same)
    assert decorated is same
    assert [r.implementation for r in dispatch.table()] == [same]
    dispatch.unregister("tanh", ("float", "cpu"))
    mode = dispatch.mode("Seen")
    assert dispatch.fallback(mode)(same) is same
    dispatch.unregister(None, mode)


def test_the_table_is_printed_as_one() -> None:
    mode = dispatch.mode("Tracing")
    line = same.__code__.co_firstlineno
    with (
        dispatch.register(relay.tanh, ("cpu", "half"), same),
        dispatch.register(relay.exp, (), other),
        dispatch.fallback(mode, same),
    ):
        assert str(dispatch.table()) == (
            "operator  keys       implementation\n"
            f"tanh      cpu, half  same            at test_registration.py:{line}\n"
            f"exp       any        other           at test_registration.py:{line + 5}\n"
            f"any       Tracing    same            at test_registration.py:{line}"
        )
        assert [repr(r) for r in dispatch.table()] == [
            "<same: tanh for cpu, half>",
            "<other: exp for any keys>",
            "<same: any operator for Tracing>",
        ]
        held = dispatch.table()
    assert len(held) == 3  # a table that one has never changes
    assert str(dispatch.table()) == "operator  keys  implementation"


def test_the_same_keys_of_one_operator_are_taken_once() -> None:
    with dispatch.register(relay.tanh, ("cpu", "float"), same):
        with pytest.raises(CheckError, match="`tanh` has an implementation for cpu, float already"):
            dispatch.register("tanh", ("float", "cpu"), other)
        dispatch.register(relay.tanh, ("cpu", "float"), other, replace=True)
        assert [r.implementation for r in dispatch.table()] == [other]
        with dispatch.register(relay.tanh, "cpu", same), dispatch.register("exp", "cpu", same):
            assert len(dispatch.table()) == 3
        dispatch.unregister("tanh", ("cpu", "float"))


def test_what_is_not_there_cannot_be_taken_out_by_its_keys() -> None:
    with (
        dispatch.register(relay.tanh, "cpu", same) as made,
        pytest.raises(CheckError, match="it has one for cpu"),
    ):
        dispatch.unregister(relay.tanh, "cuda")
    made.remove()  # again: nothing happens
    with pytest.raises(CheckError, match="every operator has no implementation for cpu"):
        dispatch.unregister(None, "cpu")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sotfmax", "'sotfmax' is no operator; did you mean `softmax`?"),
        ("xyzzy", "'xyzzy' is no operator"),
        (relay.grad, "`grad` is no operator"),
        (same, "`same` is no operator"),
        (3, "3 is no operator"),
    ],
)
def test_what_is_no_operator_is_refused(given: Any, message: str) -> None:
    with pytest.raises(CheckError) as caught:
        dispatch.register(given, "cpu", same)
    assert caught.value.codes == ("RL580",)
    assert caught.value.diagnostics[0].title == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("cud", "'cud' is no key; did you mean `cuda`?"),
        ("float23", "'float23' is no key; did you mean `float32`?"),
        ("Tracing", "'Tracing' is no key"),
        (1.5, "1.5 is no key"),
        (None, "None is no key"),
        (relay.tanh, "<operator tanh> is no key"),
    ],
)
def test_what_is_no_key_is_refused(given: Any, message: str) -> None:
    def included() -> None:
        with dispatch.include(given):
            pass

    def excluded() -> None:
        with dispatch.exclude(given):
            pass

    for wrong in (
        lambda: dispatch.register(relay.tanh, given, same),
        lambda: dispatch.fallback(given, same),
        included,
        excluded,
    ):
        with pytest.raises(CheckError) as caught:
            wrong()
        assert caught.value.codes == ("RL581",)
        assert caught.value.diagnostics[0].title == message


@pytest.mark.parametrize(("make", "name"), [(dispatch.mode, "a b"), (dispatch.device, "cuda:0")])
def test_a_mode_and_a_device_have_names(make: Any, name: str) -> None:
    for wrong in (name, "", 3):
        with pytest.raises(CheckError) as caught:
            make(wrong)
        assert caught.value.codes == ("RL582",)


def test_an_implementation_takes_what_the_operator_does() -> None:
    def softmax(x: Any, *, dim: int, dtype: Any = None) -> Any:
        return x, dim, dtype

    for op, wrong in [(relay.softmax, same), (relay.add, same), (relay.zeros, same)]:
        with pytest.raises(CheckError) as caught:
            dispatch.register(op, "cpu", wrong)
        assert caught.value.codes == ("RL585",)
    with pytest.raises(CheckError, match="it is no function"):
        dispatch.register(relay.tanh, "cpu", 3)
    with pytest.raises(CheckError, match=r"it is called as f\(call\)"):
        dispatch.fallback("cpu", lambda: None)
    dispatch.register(relay.softmax, "cpu", softmax).remove()
    dispatch.register(relay.tanh, "cpu", abs).remove()
    dispatch.register(relay.add, "cpu", same, boxed=True).remove()


def test_registering_from_many_threads_loses_nothing() -> None:
    modes = [dispatch.mode(f"M{i}") for i in range(40)]

    def work(part: int) -> None:
        for mode in modes[part::4]:
            dispatch.fallback(mode, same)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {r.keys[0] for r in dispatch.table()} == set(modes)
    for registration in dispatch.table():
        registration.remove()


def test_redispatch_outside_of_an_implementation_is_refused() -> None:
    with pytest.raises(CheckError) as caught:
        dispatch.redispatch()
    assert caught.value.codes == ("RL586",)
