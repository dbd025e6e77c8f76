"""What people are used to write in torch and Python, with the values that these give."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List

N, K = Dim("N"), Dim("K")


@relay
def cleaned(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    y = x.clone()
    y[y < 0] = 0.0
    y[-1] *= 2
    return y + x


@relay
def shifted(x: Tensor[Float, (N, K)], by: int) -> Tensor[Float, (N, K)]:
    return relay.roll(x, by, 1) + relay.tril(x, by)


@relay
def listed(pairs: List[tuple[str, Float]]) -> str:
    text = ""
    for place, (name, value) in enumerate(pairs, start=1):
        text += f"{place}:{name}={value:.1f};"
    return text


@relay_model
def normed(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return relay.batch_norm(x)


def test_a_clone_is_written_to() -> None:
    x = torch.tensor([-1.0, 2.0, 3.0])
    torch.testing.assert_close(cleaned(x), torch.tensor([-1.0, 4.0, 9.0]))
    assert torch.equal(x, torch.tensor([-1.0, 2.0, 3.0]))


def test_a_shift_that_the_call_tells_may_be_negative() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for by in (-2, 0, 1):
        torch.testing.assert_close(shifted(x, by), x.roll(by, 1) + x.tril(by))
        torch.testing.assert_close(shifted.interpret(x, by), x.roll(by, 1) + x.tril(by))


def test_elements_of_a_list_of_pairs_have_formats() -> None:
    assert listed([("a", 1.0), ("b", 2.25)]) == "1:a=1.0;2:b=2.2;"


def test_training_refuses_a_batch_of_one_value_per_channel() -> None:
    model = relay.create_model(normed)
    with pytest.raises(RunError, match="one value per channel has no variance"):
        model(torch.ones(1, 3))
    assert not any(bool(v.isnan().any()) for v in model.state_dict().values())
    model.eval()
    assert model(torch.ones(1, 3)).shape == (1, 3)


@relay
def count(n: int) -> Int:
    return n * 4


def test_an_integer_that_does_not_fit_is_an_error_of_the_program() -> None:
    assert int(count(3)) == 12
    for run in (count, count.interpret):
        with pytest.raises(RunError, match="does not fit into 64 bits"):
            run(2**62)


@relay
def told(x: Float, flag: bool) -> None:
    if flag:
        print(f"{x:.1f}")  # noqa: T201  the program does


def test_a_function_that_returns_nothing_gives_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(2.0, True) is None
    assert told.interpret(2.0, False) is None
    assert capsys.readouterr().out == "2.0\n"


@relay
def over_fields(x: Float, pair: tuple[Float, Float]) -> Float:
    for scale in (1.0, 2, pair[0]):
        x = x * scale
    for number, field in enumerate(reversed(pair)):
        x = x + field * number
    return x


@relay
def over_a_shape(x: Tensor[Float, (N, 3, K)]) -> Int:
    total = 1
    for size in x.shape[1:]:
        total = total * size
    return total


@relay
def normed_by_its_shape(x: Tensor[Float, (N, 3, K)]) -> Tensor[Float, (N, 3, K)]:
    return relay.layer_norm(x, x.shape[1:]) + relay.zeros(x.shape[::-1]).permute(2, 1, 0)


def test_a_loop_runs_over_the_fields_of_a_tuple() -> None:
    for run in (over_fields, over_fields.interpret):
        assert run(2.0, (3.0, 4.0)) == 2.0 * 1.0 * 2 * 3.0 + 4.0 * 0 + 3.0 * 1
    slopes = relay.grad(over_fields)(2.0, (3.0, 4.0))
    assert slopes == (6.0, (5.0, 0.0))


def test_a_slice_of_a_shape_is_a_shape() -> None:
    x = torch.randn(2, 3, 5)
    assert over_a_shape(x) == over_a_shape.interpret(x) == 15
    expected = torch.nn.functional.layer_norm(x, x.shape[1:])
    torch.testing.assert_close(normed_by_its_shape(x), expected)


@relay
def masked(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.softmax(x.masked_fill(x < 0.0, float("-inf")), 0) * int("2")


def test_texts_that_are_numbers_are_numbers() -> None:
    x = torch.tensor([1.0, -2.0, 3.0])
    expected = 2 * x.masked_fill(x < 0.0, float("-inf")).softmax(0)
    for run in (masked, masked.interpret):
        torch.testing.assert_close(run(x), expected)
