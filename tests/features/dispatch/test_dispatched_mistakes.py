"""Mistakes of an implementation are reported with the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, dispatch, relay
from tests.features.dispatch.dispatching import Counting, Seen, X, wave

N = Dim("N")


WRONG: list[tuple[Callable[[torch.Tensor], Any], str]] = [
    (lambda x: x.double(), "Tensor[float64, (4, 3)]"),
    (lambda x: x[1:], "Tensor[Float, (3, 3)]"),
    (lambda x: x.sum(), "Float"),
    (lambda x: (x, x), "tuple[Tensor[Float, (4, 3)], Tensor[Float, (4, 3)]]"),
    (lambda x: None, "None"),
    (lambda x: 1.0, "the float 1.0"),
    (lambda x: x.to("meta"), "Tensor[Float, (4, 3)] on meta"),
    (lambda x: x.to(torch.complex64), "Tensor[complex64, (4, 3)]"),
]


@pytest.mark.parametrize(("wrong", "text"), WRONG, ids=[t for _, t in WRONG])
def test_a_result_of_another_type_is_refused_with_the_users_line(wrong: Any, text: str) -> None:
    with dispatch.register(relay.tanh, "cpu", wrong):
        for run in (wave, wave.interpret):
            with pytest.raises(RunError) as caught:
                run(X)
            (found,) = caught.value.diagnostics
            assert found.code == "RL587"
            assert f"`tanh`, gave {text}, not Tensor[Float, (4, 3)]" in found.title
            assert found.primary is not None
            assert found.primary.span.text == "relay.tanh(x)"
        with pytest.raises(RunError, match="gave"):
            relay.tanh(X)


def test_a_size_that_only_the_result_shows_is_the_implementations_to_choose() -> None:
    @relay
    def places(x: Tensor[Float, (N,)]) -> Int:
        return relay.numel(relay.nonzero(x))

    x = torch.tensor([0.0, 1.0, 2.0])
    with dispatch.register(relay.nonzero, (), lambda x: torch.zeros(5, 1, dtype=torch.int64)):
        assert int(places(x)) == 5
        assert int(places.interpret(x)) == 5
    with (
        dispatch.register(relay.nonzero, (), lambda x: torch.zeros(5, 2, dtype=torch.int64)),
        pytest.raises(RunError, match="not Tensor"),
    ):
        places(x)


def test_what_an_implementation_raises_is_told_with_the_users_line() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("no such kernel")

    with dispatch.register(relay.tanh, "cpu", broken):
        for run in (wave, wave.interpret):
            with pytest.raises(RunError) as caught:
                run(X)
            (found,) = caught.value.diagnostics
            assert found.code == "RL588"
            assert found.notes[0] == "KeyError: 'no such kernel'"
            assert found.primary is not None
            assert found.primary.span.text == "relay.tanh(x)"
            assert isinstance(caught.value.__cause__, KeyError)


def test_what_the_operator_itself_raises_is_told_as_ever() -> None:
    @relay
    def item(x: Tensor[Float, (N,)], i: int) -> Float:
        return x[i]

    with dispatch.fallback(Counting, Seen()), dispatch.include(Counting):
        for run in (item, item.interpret):
            with pytest.raises(RunError) as caught:
                run(torch.ones(3), 7)
            assert caught.value.codes == ("RL502",)
