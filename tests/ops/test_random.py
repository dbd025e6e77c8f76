"""Random words, what is made of them, and the initial values of models."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrelay.ir.op import Init, Library, Op
from pyrelay.operators.composite import draws as made
from pyrelay.operators.composite import dropout, model
from pyrelay.operators.primitive import random as draws
from pyrelay.operators.shared import philox

CPU = torch.device("cpu")


def run(op: Op, *args: Any) -> Any:
    assert isinstance(op.lowering, Library)
    return op.lowering.body(torch, *args)


def key(seed: int) -> torch.Tensor:
    return run(draws.random_key, CPU, seed)


@pytest.mark.parametrize(
    ("counter", "words", "expected"),
    [
        # The known answers that come with Random123, the authors' own implementation.
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_words(
    counter: tuple[int, int, int, int], words: tuple[int, int], expected: tuple[int, ...]
) -> None:
    assert philox.philox(counter, words) == expected
    tensors = philox.philox(tuple(map(torch.tensor, counter)), tuple(map(torch.tensor, words)))
    assert tuple(map(int, tensors)) == expected


@given(st.integers(0, 2**63 - 1), st.integers(0, 40))
def test_drawn_words_are_philox_of_their_position(seed: int, count: int) -> None:
    two = tuple(key(seed).tolist())
    blocks = [philox.philox((i, 0, 0, philox.DRAW), two) for i in range((count + 3) // 4)]
    expected = [word for block in blocks for word in block][:count]
    assert philox.words(torch, key(seed), count).tolist() == expected


def test_many_words_are_those_of_few() -> None:
    count = 5 * (1 << 18) + 3
    many = philox.words(torch, key(1), count)
    assert many.shape == (count,)
    two = tuple(key(1).tolist())
    assert many[-1] == philox.philox(((count - 1) // 4, 0, 0, 0), two)[(count - 1) % 4]
    assert many[:1000].tolist() == philox.words(torch, key(1), 1000).tolist()


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_folded_key_is_the_same_for_a_number_and_a_tensor(seed: int, data: int) -> None:
    number = run(draws.fold_in, key(seed), data)
    tensor = run(draws.fold_in, key(seed), torch.tensor(data))
    assert number.tolist() == tensor.tolist()
    assert all(0 <= word <= 0xFFFFFFFF for word in number.tolist())


def test_keys_made_of_one_key_differ() -> None:
    folded = [run(draws.fold_in, key(3), i).tolist() for i in range(50)]
    split = run(draws.random_split, key(3), 50).tolist()
    assert len({tuple(k) for k in (*folded, *split, key(3).tolist())}) == 101


def test_a_seed_that_the_program_computes_gives_the_same_key() -> None:
    for seed in (0, 7, -1, 2**40 + 5):
        assert run(draws.key, seed).tolist() == key(seed).tolist()
        assert run(draws.key, torch.tensor(seed)).tolist() == key(seed).tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_are_below_one_in_every_dtype(dtype: torch.dtype) -> None:
    found = run(draws.uniform, key(0), (200_000,), 0.0, 1.0, dtype)
    assert found.dtype == dtype
    assert found.min() >= 0
    assert found.max() < 1
    assert found.double().mean() == pytest.approx(0.5, abs=0.005)
    assert found.double().var() == pytest.approx(1 / 12, abs=0.002)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_normal_numbers_have_the_moments_of_the_normal_distribution(dtype: torch.dtype) -> None:
    found = run(draws.normal, key(0), (300, 1001), dtype).double()
    assert found.shape == (300, 1001)
    moments = [float((found**k).mean()) for k in (1, 2, 3, 4)]
    assert moments == pytest.approx([0.0, 1.0, 0.0, 3.0], abs=0.03)


def test_bernoulli_is_true_as_often_as_its_chance() -> None:
    chance = torch.tensor([0.0, 0.2, 0.5, 1.0])
    found = run(draws.bernoulli, key(0), chance, (50_000, 4)).double().mean(0)
    assert found.tolist() == pytest.approx(chance.tolist(), abs=0.01)
    assert found[0] == 0
    assert found[3] == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_exponential_and_gumbel_numbers_have_their_moments(dtype: torch.dtype) -> None:
    found = run(made.exponential, key(0), (300, 1001), dtype)
    assert found.dtype == dtype
    assert found.min() >= 0
    assert found.double().mean() == pytest.approx(1.0, abs=0.01)
    assert found.double().var() == pytest.approx(1.0, abs=0.02)
    found = run(made.gumbel, key(1), (300, 1001), dtype)
    assert bool(torch.isfinite(found).all())
    assert found.double().mean() == pytest.approx(0.5772, abs=0.01)
    assert found.double().var() == pytest.approx(math.pi**2 / 6, abs=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gumbel_number_is_finite_where_the_uniform_one_is_0(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(philox, "uniform", lambda t, k, n, d: torch.zeros(n, dtype=d))
    found = run(made.gumbel, key(0), (2,), dtype)
    assert bool(torch.isfinite(found).all())
    assert found[0] > 17


def test_categorical_positions_are_drawn_by_their_weights() -> None:
    logits = torch.tensor([0.0, -math.inf, 1.0, -1.0])
    found = run(made.categorical, key(0), logits.expand(100_000, 4), -1)
    shares = torch.bincount(found, minlength=4) / 100_000
    assert shares.tolist() == pytest.approx(logits.softmax(0).tolist(), abs=0.01)
    assert shares[1] == 0


def test_dropout_keeps_the_mean_and_depends_on_its_key_alone() -> None:
    x = torch.ones(100, 1000)
    dropped = run(dropout.dropout, x, key(0), 0.3, True)
    assert dropped.mean() == pytest.approx(1.0, abs=0.01)
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0.0, 1 / 0.7])
    assert torch.equal(dropped, run(dropout.dropout, x, key(0), 0.3, True))
    assert not torch.equal(dropped, run(dropout.dropout, x, key(1), 0.3, True))
    assert torch.equal(x, run(dropout.dropout, x, None, 0.3, False))


def initial(init: str, path: str = "fc.weight", seed: int = 0, size: Any = (30, 400)) -> Any:
    return run(model.initial, CPU, init, seed, path, size, None, None)


def test_initial_weights_have_the_scale_that_their_inputs_ask_for() -> None:
    assert initial("fan_in").std() == pytest.approx(1 / math.sqrt(400), rel=0.03)
    assert initial("fan_in", size=(20, 4, 5, 5)).std() == pytest.approx(0.1, rel=0.05)
    assert initial("normal").std() == pytest.approx(1.0, rel=0.03)
    assert torch.equal(initial("zeros"), torch.zeros(30, 400))
    assert torch.equal(initial("ones"), torch.ones(30, 400))


def test_an_initial_value_depends_on_the_seed_and_its_path_alone() -> None:
    assert torch.equal(initial("fan_in"), initial("fan_in"))
    assert not torch.equal(initial("fan_in"), initial("fan_in", path="fc.bias"))
    assert not torch.equal(initial("fan_in"), initial("fan_in", seed=1))
    assert torch.equal(initial("fan_in", size=(0, 3)), torch.zeros(0, 3))


def test_every_way_to_start_a_parameter_has_a_value() -> None:
    for kind in Init:
        assert initial(kind.name.lower(), size=(2, 3)).shape == (2, 3)
    assert initial("key", size=None).shape == (2,)
