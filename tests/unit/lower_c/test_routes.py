"""Products of matrices by a library or by loops of a kernel: values, and which is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, float64, options, relay
from pyrelay.autotuning import measurements
from pyrelay.autotuning.timing import Fastest
from pyrelay.lower_c.functions import routing
from pyrelay.lower_c.launching import routes
from pyrelay.lower_c.launching.threads import torch_functions

pytestmark = [
    pytest.mark.host("lowerings are chosen here"),
    pytest.mark.skipif(
        torch_functions("sgemm_", "dgemm_") is None, reason="torch exports no BLAS here"
    ),
]

N, M, K, L, B = Dim("N"), Dim("M"), Dim("K"), Dim("L"), Dim("B")


def layer(x: Tensor[Float, (N, K)], w: Tensor[Float, (M, K)], b: Tensor[Float, (M,)]):
    return relay.tanh(relay.linear(x, w, b))


def turned(x: Tensor[float64, (K, N)], y: Tensor[float64, (K, M)]):
    return relay.transpose(x, 0, 1) @ y + 1.0


def batched(x: Tensor[Float, (B, N, K)], y: Tensor[Float, (B, K, M)]):
    return (x @ y) * 0.5


def products(x: Tensor[Float, (B, N, K)], y: Tensor[Float, (B, K, M)]):
    return x @ y


def normalised(x: Tensor[Float, (N, K)], w: Tensor[Float, (10, K)]):
    return relay.softmax(relay.linear(x, w), dim=1)


def gated(x: Tensor[Float, (N, K)], w: Tensor[Float, (2 * M, K)]):
    both = relay.linear(x, w)
    size = w.shape[0] // 2
    return relay.sigmoid(both[:, :size]) * both[:, size:]


def flattened(x: Tensor[Float, (N, 8, 40)], w: Tensor[Float, (M, 320)]):
    h = relay.softmax(x, dim=-1)
    return h, relay.tanh(relay.linear(relay.flatten(h, start_dim=1), w))


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


def with_columns(x: Tensor[Float, (N, K)], w: Tensor[Float, (M, K)], h: Tensor[Float, (N, M)]):
    made = relay.linear(x, w) * h
    return made, made.sum(0), (made * h).sum(0)


def added(
    x: Tensor[Float, (N, K)],
    w: Tensor[Float, (K, M)],
    y: Tensor[Float, (N, L)],
    v: Tensor[Float, (L, M)],
):
    return x @ w + y @ v


def stepped(x: Tensor[Float, (N, M, K)], w: Tensor[Float, (K, K)], s: Tensor[Float, (M, K)]):
    for row in x:
        s = relay.tanh(row @ w + relay.linear(s, w))
    return s.sum()


steps = relay(stepped)


def stepped_gradient(
    x: Tensor[Float, (N, M, K)], w: Tensor[Float, (K, K)], s: Tensor[Float, (M, K)]
):
    return relay.value_and_grad(steps, wrt=("w", "s"))(x, w, s)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "layer": (layer, (numbers(37, 50), numbers(65, 50), numbers(65))),
    "one row": (layer, (numbers(1, 300), numbers(129, 300), numbers(129))),
    "strided": (layer, (numbers(50, 37).T, numbers(50, 65).T, numbers(65))),
    "turned": (
        turned,
        (numbers(40, 33, dtype=torch.float64), numbers(40, 29, dtype=torch.float64)),
    ),
    "batched": (batched, (numbers(3, 20, 30), numbers(3, 30, 25))),
    "rows": (normalised, (numbers(70, 60), numbers(10, 60))),
    "two sums": (gated, (numbers(31, 64), numbers(34, 64))),
    "columns of sums": (with_columns, (numbers(40, 60), numbers(50, 60), numbers(40, 50))),
    "columns of turned sums": (
        with_columns,
        (numbers(60, 40).T, numbers(60, 50).T, numbers(50, 40).T),
    ),
    "sums of sums": (added, (numbers(40, 60), numbers(60, 50), numbers(40, 70), numbers(70, 50))),
    "a loop": (stepped, (numbers(5, 37, 40), numbers(40, 40) * 0.1, numbers(37, 40))),
    "the gradient of a loop": (
        stepped_gradient,
        (numbers(5, 37, 40), numbers(40, 40) * 0.1, numbers(37, 40)),
    ),
    "under another shape": (flattened, (numbers(40, 8, 40), numbers(64, 320))),
    "many blocks": (layer, (numbers(701, 20), numbers(517, 20), numbers(517))),
    "many blocks of sums alone": (products, (numbers(2, 600, 30), numbers(2, 30, 510))),
    "no rows": (layer, (numbers(0, 50), numbers(65, 50), numbers(65))),
    "nothing is summed": (layer, (numbers(4, 0), numbers(5, 0), numbers(5))),
}


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(measurements, "_winners", {})
    with options(cache_dir=tmp_path, lowering="c"):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_ways_compute_the_values_of_torch(name: str) -> None:
    function, args = PROGRAMS[name]
    with options(lowering="torch"):
        expected = relay(function)(*args)
    for way in ("own", "library", "measured"):
        with options(products=way):
            program = relay(function)
            for _ in range(2):
                torch.testing.assert_close(program(*args), expected, rtol=1e-5, atol=1e-5)


def test_the_number_of_threads_changes_rounding_alone() -> None:
    before = torch.get_num_threads()
    try:
        for name in ("many blocks", "many blocks of sums alone"):
            function, args = PROGRAMS[name]
            found: list[torch.Tensor] = []
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                with options(products="library"):
                    found.append(relay(function)(*args))
            for other in found[1:]:
                torch.testing.assert_close(other, found[0], rtol=1e-5, atol=1e-5)
    finally:
        torch.set_num_threads(before)


def test_the_same_choice_gives_the_same_bits() -> None:
    function, args = PROGRAMS["layer"]
    for way in ("own", "library"):
        with options(products=way):
            assert torch.equal(relay(function)(*args), relay(function)(*args))


def test_explain_shows_what_was_chosen() -> None:
    function, args = PROGRAMS["layer"]
    with options(products="library"):
        program = relay(function)
        program(*args)
        assert "37 x 50 x 65 by a library, as the option `products` asks" in program.explain()


def test_a_measurement_is_made_once_for_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []
    real = routes.fastest

    def watched(functions, operands):
        made.append(tuple(functions))
        return real(functions, operands)

    monkeypatch.setattr(routes, "fastest", watched)
    function, args = PROGRAMS["layer"]
    relay(function)(*args)
    relay(function)(*args)
    assert made == [("own", "library")]


def test_what_was_measured_is_kept_between_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    function, args = PROGRAMS["layer"]
    kept: dict[str, str] = {}
    monkeypatch.setattr(measurements, "keep", kept.__setitem__)
    monkeypatch.setattr(measurements, "recall", kept.get)
    found = routes.fastest

    def sure(functions, operands):
        functions["library"]()
        return type(found({"own": functions["own"]}, operands))("library", True, {})

    monkeypatch.setattr(routes, "fastest", sure)
    relay(function)(*args)
    assert list(kept.values()) == ["library"]
    monkeypatch.setattr(measurements, "_winners", {})
    program = relay(function)
    program(*args)
    assert "by a library, as measured before" in program.explain()


def test_an_unknown_value_of_the_option_is_refused() -> None:
    with pytest.raises(ValueError, match="measured, own, library"), options(products="mkl"):
        pass


def test_a_function_computes_a_product_both_ways_once_for_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[Fastest] = []

    def settle_way(key: str, name: str, found: Fastest) -> str:
        measured.append(found)
        return routes.settle_way(key, name, found)

    monkeypatch.setattr(routing, "settle_way", settle_way)
    function, (x, w, s) = PROGRAMS["a loop"]
    program = relay(function)
    for _ in range(3):
        program(x, w, s)
    count = len(measured)
    assert 1 <= count <= 2
    assert all(time > 0 for found in measured for time in found.times.values())
    program(x[:, :20], w, s[:20])
    assert count < len(measured) <= 2 * count


def test_explain_shows_the_ways_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "winner_of", lambda _, __: "library")
    function, args = PROGRAMS["a loop"]
    program = relay(function)
    program(*args)
    assert "37 x 40 x 40 by a library, as measured before" in program.explain()
