"""Calls that can be done in several ways take the fastest, which is measured once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode

from pyrelay.autotuning import measurements, methods
from pyrelay.autotuning.methods import MeasuredCall, Site, rounded
from pyrelay.autotuning.timing import Fastest
from pyrelay.config import options
from pyrelay.ir.op import Method
from pyrelay.runtime.compile.program import Program
from pyrelay.runtime.host import CompiledProgram, compile_module
from pyrelay.text.parser import parse_module
from tests.unit.runtime.host.programs import compiled, prepared, run_both

CONV = """def @main[N: Dim](
  %x: Tensor[(N, 3, 9, 9), float32], %w: Tensor[(4, 3, 3, 3), float32], %b: Tensor[(4,), float32]
) { conv2d(%x, %w, %b) }"""

STEP = """def @main[N: Dim, H: Dim](
  %x: Tensor[(N, 3, H, 12), float32], %w: Tensor[(4, 3, 3, 3), float32],
  %b: Tensor[(4,), float32], %m: Tensor[(200, 128), float32], %y: Tensor[(N, 128), float32]
) {
  let %pooled = max_pool2d(conv2d(%x, %w, %b, padding=1), kernel_size=2);
  (sum(%pooled, dim=(2, 3)), linear(%y, %m), matmul(linear(%y, %m), %m))
}"""

Functions = Mapping[str, Callable[..., Any]]


class Chooser:
    """Stands for the measurement: chooses a method by name where there is one of that name."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.found: list[str] = []

    def __call__(self, functions: Functions, operands: Sequence[Any]) -> Fastest:
        for function in functions.values():
            function(*operands)
        self.found.append(self.wanted if self.wanted in functions else "plain")
        return Fastest(self.found[-1], is_sure=True, times={})


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Chooser]]:
    """Return what has a method chosen from here on; nothing is known of earlier measurements."""

    def choose(wanted: str) -> Chooser:
        chooser = Chooser(wanted)
        monkeypatch.setattr(methods, "fastest", chooser)
        return chooser

    monkeypatch.setattr(measurements, "_winners", {})
    with options(cache_dir=tmp_path, measure=True):
        yield choose


def images(batch: int = 2) -> tuple[torch.Tensor, ...]:
    """Return operands of CONV."""
    return torch.randn(batch, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4)


def sites(program: CompiledProgram) -> list[str]:
    """Return the functions that were written for methods."""
    lines = program.source.splitlines()
    return [line[4 : line.index("(")] for line in lines if line.startswith("def ")][1:]


@pytest.mark.parametrize("method", ["plain", "unfold", "channels_last", "onednn"])
def test_programs_give_the_evaluators_values_by_any_method(
    choose: Callable[[str], Chooser], method: str
) -> None:
    chooser = choose(method)
    for batch, height in ((1, 12), (3, 17), (0, 12), (3, 17)):
        x, w, b = torch.randn(batch, 3, height, 12), torch.randn(4, 3, 3, 3), torch.randn(4)
        m, y = torch.randn(200, 128) / 10, torch.randn(batch, 128) / 10
        run_both(STEP, x, w, b, m, y)
        run_both(STEP, x.transpose(2, 3).contiguous().transpose(2, 3), w, b, m, y)
    assert set(chooser.found) == {"plain", method}


def test_the_text_has_a_function_for_each_method(choose: Callable[[str], Chooser]) -> None:
    choose("unfold")
    program = compiled(CONV)
    assert sites(program) == ["conv2d__1__plain", "conv2d__1__unfold", "conv2d__1__channels_last"]
    assert "conv2d__1[x.shape](x, w, b)" in program.source
    assert program.source == compiled(CONV).source


def test_equal_calls_share_their_functions(choose: Callable[[str], Chooser]) -> None:
    chooser = choose("unfold")
    twice = CONV.replace("conv2d(%x, %w, %b)", "add(conv2d(%x, %w, %b), conv2d(%x, %w, %b))")
    assert len(sites(compiled(twice))) == 3
    run_both(twice, *images())
    assert len(chooser.found) == 1


def test_sizes_are_measured_once(choose: Callable[[str], Chooser]) -> None:
    chooser = choose("unfold")
    program = compiled(CONV)
    for batch in (1, 2, 1, 2, 1):
        program(*images(batch))
    assert chooser.found == ["unfold", "unfold"]
    compiled(CONV)(*images(1))
    assert len(chooser.found) == 2, "another program knows, too"


def test_what_was_measured_is_kept_for_other_processes(
    choose: Callable[[str], Chooser], monkeypatch: pytest.MonkeyPatch
) -> None:
    chooser = choose("unfold")
    compiled(CONV)(*images())
    monkeypatch.setattr(measurements, "_winners", {})
    compiled(CONV)(*images())
    assert len(chooser.found) == 1


def test_a_guess_is_not_kept(
    choose: Callable[[str], Chooser], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    choose("unfold")
    guess = Fastest("unfold", is_sure=False, times={})
    monkeypatch.setattr(methods, "fastest", lambda *_: guess)
    compiled(CONV)(*images())
    assert not list(tmp_path.rglob("*.json"))


def test_a_method_that_is_no_longer_there_is_measured_anew(
    choose: Callable[[str], Chooser], monkeypatch: pytest.MonkeyPatch
) -> None:
    chooser = choose("unfold")
    monkeypatch.setattr(measurements, "recall", lambda _: "winograd")
    compiled(CONV)(*images())
    assert chooser.found == ["unfold"]


def test_close_sizes_share_a_measurement(choose: Callable[[str], Chooser]) -> None:
    assert [rounded(n) for n in (0, 1, 16, 17, 20, 21, 33, 64, 65, 1000)] == [
        0, 1, 16, 20, 20, 24, 40, 64, 80, 1024,
    ]  # fmt: skip
    chooser = choose("unfold")
    program = compiled(CONV)
    for batch in range(65, 81):
        program(*images(batch))
    assert len(chooser.found) == 1


def test_a_method_that_takes_much_memory_does_not_take_part(
    choose: Callable[[str], Chooser], monkeypatch: pytest.MonkeyPatch
) -> None:
    chooser = choose("unfold")
    monkeypatch.setattr(methods, "_MOST_ROOM", 1000)
    compiled(CONV)(*images())
    assert chooser.found == ["plain"]


def test_tensors_of_nothing_are_not_measured(choose: Callable[[str], Chooser]) -> None:
    chooser = choose("unfold")
    assert compiled(CONV)(*images(0)).shape == (0, 4, 7, 7)
    assert chooser.found == []


def test_pretended_tensors_are_not_measured(choose: Callable[[str], Chooser]) -> None:
    chooser = choose("unfold")
    program = compiled(CONV)
    with FakeTensorMode() as mode:
        found = program(*map(mode.from_tensor, images()))
    assert found.shape == (2, 4, 7, 7)
    assert chooser.found == []
    program(*images())
    assert chooser.found == ["unfold"]


def test_a_site_remembers_a_bounded_number_of_sizes(
    choose: Callable[[str], Chooser], monkeypatch: pytest.MonkeyPatch
) -> None:
    choose("double")
    monkeypatch.setattr(methods, "_MOST_SIZES", 4)
    double = Method("double", lambda _, x: x * 2, lambda *_: True)
    site = Site(
        MeasuredCall("f", (double,), ((True,),)),
        lambda: {"plain": lambda x: x + x, "double": lambda x: x * 2},
    )
    for size in range(1, 12):
        assert site[size](torch.ones(size)).sum() == 2 * size
        assert size in site
        assert len(site) <= 4


def test_the_option_turns_it_off() -> None:
    with options(measure=False):
        program = compiled(CONV)
    assert sites(program) == []
    assert "torch.nn.functional.conv2d(x, w, b" in program.source


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.host("how host code does an operator")
def test_transforms_of_torch_see_what_torch_calls_itself(choose: Callable[[str], Chooser]) -> None:
    chooser = choose("unfold")
    program = Program(parse_module(CONV), "main")
    (x, w, b), rows = images(), torch.randn(5, 2, 3, 9, 9)

    def call(x: torch.Tensor) -> torch.Tensor:
        return program.compiled(torch.device("cpu"))(x, w, b)

    expected = torch.conv2d(x, w, b)
    torch.testing.assert_close(call(x), expected)
    many = torch.func.vmap(call)(rows)
    torch.testing.assert_close(many, torch.stack([torch.conv2d(row, w, b) for row in rows]))
    tangent = torch.func.jvp(call, (x,), (rows[0],))[1]
    torch.testing.assert_close(tangent, torch.conv2d(rows[0], w))
    assert chooser.found == ["unfold"]


def test_on_other_devices_there_is_one_way(choose: Callable[[str], Chooser]) -> None:
    choose("unfold")
    program = compile_module(prepared(CONV), "main", torch.device("meta"))
    assert sites(program) == []


def test_small_products_are_called_as_they_are(choose: Callable[[str], Chooser]) -> None:
    choose("onednn")
    small = """def @main[N: Dim](%x: Tensor[(N, 8), float32], %w: Tensor[(8, 8), float32]) {
      matmul(%x, %w)
    }"""
    assert sites(compiled(small)) == []
    large = small.replace("8", "128")
    assert sites(compiled(large)) == ["matmul__1__plain", "matmul__1__onednn"]
    one_row = large.replace("[N: Dim]", "").replace("(N, ", "(1, ")
    assert sites(compiled(one_row)) == []
    assert sites(compiled(large.replace("float32", "float64"))) == []


def test_the_real_measurement_chooses_one_of_the_methods(tmp_path: Path) -> None:
    with options(cache_dir=tmp_path, measure=True):
        x, w, b = images()
        torch.testing.assert_close(compiled(CONV)(x, w, b), torch.conv2d(x, w, b))
