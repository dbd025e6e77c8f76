"""`relay.parse`: a module of functions that are called, checked, shown and differentiated."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import pyrelay
from pyrelay import relay
from pyrelay.diagnostics.diagnostic import CheckError, RunError
from pyrelay.ir.equality import alpha_equal

TEXT = """
def @main(%x: Tensor[(N, 3), float32], %w: Tensor[(2, 3), float32]) {
  @act(linear(%x, %w))
}
def @act[N: Dim](%x: Tensor[(N, 2), float32]) { tanh(%x) }
def @loss(%x: Tensor[(N, 3), float32], %w: Tensor[(2, 3), float32]) { mean(@main(%x, %w)) }
def @count(%n: int64) -> int64 { if (%n <= 0) { 0 } else { 1 + @count(%n - 1) } }
"""


def test_functions_are_found_by_name_and_called() -> None:
    module = relay.parse(TEXT)
    x, w = torch.rand(4, 3), torch.rand(2, 3)
    assert list(module) == ["main", "act", "loss", "count"]
    assert len(module) == 4
    assert "main" in module
    assert module["main"] is module["main"]
    torch.testing.assert_close(module["main"](x, w), torch.tanh(x @ w.T))
    torch.testing.assert_close(module["main"](w=w, x=x), torch.tanh(x @ w.T))
    torch.testing.assert_close(module["main"].interpret(x, w), torch.tanh(x @ w.T))
    assert module["count"](5) == 5
    assert relay.function(module)(x, w).shape == (4, 2)
    assert relay.function(module.ir, "count")(3) == 3


def test_the_text_of_a_module_reads_back() -> None:
    module = relay.parse(TEXT)
    assert alpha_equal(relay.parse(str(module)).ir, module.ir)
    assert alpha_equal(relay.parse(module.to_json()).ir, module.ir)
    assert alpha_equal(relay.parse(str(module.typed)).ir, module.typed.ir)
    assert repr(module) == "<relay module of main, act, loss, count>"


def test_a_typed_text_runs_too() -> None:
    typed = relay.parse(str(relay.parse(TEXT).typed))
    assert typed["count"](4) == 4
    assert typed["main"](torch.rand(4, 3), torch.rand(2, 3)).shape == (4, 2)
    assert relay.grad(typed["loss"], wrt="w")(torch.rand(4, 3), torch.rand(2, 3)).shape == (2, 3)


def test_gradients_of_functions_of_a_module() -> None:
    loss = relay.parse(TEXT)["loss"]
    x, w = torch.rand(4, 3), torch.rand(2, 3, requires_grad=True)
    torch.tanh(x @ w.T).mean().backward()
    expected, w.grad = w.grad, None
    torch.testing.assert_close(relay.grad(loss, wrt="w")(x, w.detach()), expected)
    value, (_, slope) = relay.value_and_grad(loss)(x, w.detach())
    torch.testing.assert_close(slope, expected)
    loss(x, w).backward()
    torch.testing.assert_close(w.grad, expected)
    value, back = relay.vjp(loss, wrt="w")(x, w.detach())
    torch.testing.assert_close(back(torch.ones_like(value)), expected)


def test_a_function_can_be_looked_into() -> None:
    main = relay.parse(TEXT)["main"]
    assert main.type.startswith("(x: Tensor[Float, (N, 3)], w: Tensor[Float, (2, 3)])")
    assert "@act" in str(main)
    assert "@loss" not in str(main)
    assert "linear" in main.show("source")
    assert main.show("host")
    assert main.diff("typed", "simplified")
    assert not main.check().warnings
    main(torch.rand(1, 3), torch.rand(2, 3))
    main(torch.rand(1, 3), torch.rand(2, 3))
    assert main.cache_info() == (1, 1, 1) or main.cache_info().entries == 1


def test_an_unknown_function_is_answered_with_what_is_near() -> None:
    with pytest.raises(KeyError, match="did you mean 'count'"):
        relay.parse(TEXT)["cuont"]
    with pytest.raises(KeyError, match="it has main, act, loss, count"):
        relay.parse(TEXT)["zzz"]


def test_mistakes_in_one_function_are_in_nobody_elses_way() -> None:
    module = relay.parse("def @good() { 1i64 } def @bad() { linear(1.0f32, ()) }")
    assert module["good"]() == 1
    with pytest.raises(CheckError):
        module.check()
    with pytest.raises(CheckError):
        module["bad"]()


def test_wrong_calls_are_refused() -> None:
    module = relay.parse(TEXT)
    with pytest.raises(RunError, match="RL554"):
        module["main"](torch.rand(4, 3))
    with pytest.raises(RunError, match="RL550"):
        module["main"](torch.rand(4, 3).double(), torch.rand(2, 3))
    with pytest.raises(CheckError, match="no parameter 'v'"):
        relay.grad(module["loss"], wrt="v")
    with pyrelay.no_compile(), pytest.raises(RunError, match="first call"):
        module["count"](1)


def test_a_file_is_read_and_named_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "program.relay"
    file.write_text("def @main() { @other() }")
    with pytest.raises(CheckError, match=r"program\.relay:1:15"):
        relay.parse(file)


def test_the_prelude_needs_no_definition() -> None:
    module = relay.parse("def @main() -> int64 { @prelude.length(Cons(1i64, Cons(2i64, Nil()))) }")
    assert module["main"]() == 2


def test_json_that_is_no_module_is_refused() -> None:
    for text in ("{", '{"format": "pyrelay-ir 1"}', "{}"):
        with pytest.raises(CheckError, match="RL640"):
            relay.parse(text)
