"""The commands on files that hold programs as text: run, opt, show and check."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from pyrelay.cli import main
from pyrelay.ir.equality import alpha_equal
from pyrelay.kernels.pipeline import all_passes
from pyrelay.text.parser import parse_module

PROGRAM = """\
#[version = "0.0.5"]
def @main(%x: Tensor[(?, 3), float32], %n: int32) -> (Tensor[(?, 3), float32], int32) {
  let %unused = 3;
  (nn.relu(%x), %n + 1 * 2)
}
def @square(%x: float32) -> float32 { %x * %x }
def @either(%c: bool, %i: Tensor[(2), int64]) { if (%c) { %i } else { reverse(%i, axis=0) } }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.relay").write_text(PROGRAM)
    return "program.relay"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    return capsys.readouterr().err


def test_a_function_is_run_on_numbers(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "run", file, "--entry", "square", "--arg", "3.0") == "tensor(9.)\n"
    assert printed(capsys, "run", file, "--entry", "square", "--arg", "-1.5") == "tensor(2.2500)\n"


def test_lists_and_bools_are_arguments(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("run", file, "--entry", "either", "--arg", "c=False", "--arg", "i=[1, 2]")
    assert printed(capsys, *command) == "tensor([2, 1])\n"


def test_a_shape_is_filled_at_random_by_a_seed(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("run", file, "--arg", "(2, 3)", "--arg", "n=4")
    first = printed(capsys, *command, "--seed", "1")
    assert first == printed(capsys, *command, "--seed", "1")
    assert first != printed(capsys, *command, "--seed", "2")
    assert first.endswith("tensor(6, dtype=torch.int32))\n")


def test_arrays_come_from_files(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([[-1.0, 2.0, 3.0]], dtype=np.float32)
    np.save("x.npy", x)
    np.savez("x.npz", a=x, b=x * 2)
    save_file({"w": torch.from_numpy(x)}, "x.safetensors")
    expected = "(tensor([[0., 2., 3.]]), tensor(2, dtype=torch.int32))\n"
    for argument in ("x.npy", "x.npz:a", "x.safetensors", "x=x.safetensors:w"):
        assert printed(capsys, "run", file, "--arg", argument, "--arg", "n=0") == expected
    assert "x.npz:NAME; it has a, b" in refused(capsys, "run", file, "--arg", "x.npz")
    Path("bad.npy").write_bytes(b"\\x00")
    for bad in ("bad.npy", "none.safetensors", "none.npz:a"):
        assert "cannot be read" in refused(capsys, "run", file, "--arg", bad)


@pytest.mark.parametrize("bad", ["what", "[1, 'a']", "lambda: 0", "(2", "x=("])
def test_arguments_that_are_nothing_are_refused(
    bad: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "the argument" in refused(capsys, "run", file, "--arg", bad)


def test_a_misspelt_function_is_answered(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean square?" in refused(capsys, "run", file, "--entry", "sqare")
    assert "did you mean square?" in refused(capsys, "show", f"{file}:sqare")
    assert "cannot be read" in refused(capsys, "run", "nothing.relay")


def test_a_wrong_argument_is_a_mistake_of_the_user(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("run", file, "--arg", "(2, 4)", "--arg", "1")) == 1
    assert "RL551" in capsys.readouterr().err


def test_passes_are_applied_in_order(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "opt", file, "-p", "anf,fold,dce")
    assert "%unused" not in text
    assert "2i32" in text
    assert "multiply" not in text
    assert alpha_equal(parse_module(printed(capsys, "opt", file)), parse_module(PROGRAM))


@pytest.mark.parametrize("name", all_passes())
def test_every_pass_can_be_asked_for(
    name: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    again = parse_module(printed(capsys, "opt", file, "--passes", name))
    assert "main" in again.functions


def test_a_misspelt_pass_is_answered(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean simplify?" in refused(capsys, "opt", file, "-p", "simplfy")
    assert "there are infer, anf" in refused(capsys, "opt", file, "-p", "zzz")


OWN_PASS = """
from dataclasses import dataclass
from typing import ClassVar

from pyrelay.ir.verify import Stage
from pyrelay.passes.base import Context, Pass


@dataclass(frozen=True)
class KeepEntry(Pass):
    name: ClassVar = "keep-entry"
    needs: ClassVar = Stage.TYPED

    def run(self, module, context: Context):
        kept = {context.entry: module.functions[context.entry]}
        return type(module)(kept, module.adts)


NUMBER = 1
"""


def test_a_pass_of_another_module_runs(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_passes.py").write_text(OWN_PASS)
    monkeypatch.syspath_prepend(tmp_path)
    text = printed(capsys, "opt", file, "-p", "own_passes:KeepEntry")
    assert list(parse_module(text).functions) == ["main"]
    assert "no pass own_passes:Nothing" in refused(capsys, "opt", file, "-p", "own_passes:Nothing")
    assert "NUMBER is a int" in refused(capsys, "opt", file, "-p", "own_passes:NUMBER")
    assert "no pass zzz:X" in refused(capsys, "opt", file, "-p", "zzz:X")


def test_passes_are_timed_verified_and_compared(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("infer", "anf", "simplify")
    assert main(("opt", file, "-p", ",".join(names), "--time", "--verify", "--diff")) == 0
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in err.splitlines()] == list(names)
    assert "--- before anf\n+++ after anf\n" in out


def test_a_text_is_shown_whole_or_in_part(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "show", file).count("def @") == 3
    assert printed(capsys, "show", f"{file}:square").count("def @") == 1
    assert "let %unused = 3i32" in printed(capsys, "show", file, "--stage", "source")
    assert "def " in printed(capsys, "show", f"{file}:square", "--stage", "host")
    assert "there is no stage" in refused(capsys, "show", file, "--stage", "nonsense")


def test_a_text_is_checked(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 functions checked, 0 errors" in printed(capsys, "check", file)
    Path("wrong.relay").write_text(PROGRAM.replace("%n + 1", "%n + 1f"))
    assert main(("check", "wrong.relay")) == 1
    assert "wrong.relay:4:" in capsys.readouterr().out
    Path("torn.relay").write_text("def @main() {")
    assert main(("check", "torn.relay", "--json")) == 1
    assert "RL600" in capsys.readouterr().out
