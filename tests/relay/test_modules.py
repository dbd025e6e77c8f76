"""`relay.parse`: a module of functions that are called, checked, shown and differentiated."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import pyrelay
from pyrelay import Dim, Float, Tensor, relay
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


DATA = """
#[version = "0.0.5"]
type Tree { Leaf(Tensor[(2), float32]), Node(Tree, Tree) }
def @total(%t: Tree) -> Tensor[(2), float32] {
  match (%t) { Leaf(%x) => { %x }, Node(%l, %r) => { tanh(@total(%l)) + @total(%r) } }
}
def @loss(%t: Tree) -> float32 { sum(@total(%t)) }
def @mirror(%t: Tree) -> Tree {
  match (%t) { Leaf(%x) => { Leaf(%x) }, Node(%l, %r) => { Node(@mirror(%r), @mirror(%l)) } }
}
def @numbers(%n: int32) -> List[int32] {
  if (%n == 0) { Nil } else { Cons(%n, @numbers(%n - 1)) }
}
def @head(%o: Option[int32]) -> Option[int32] {
  match (%o) { Some(%x) => { Some(%x + 1) }, None => { None } }
}
"""


def test_data_goes_in_and_out_as_instances_of_classes() -> None:
    module = relay.parse(DATA)
    leaf, node = module.classes["Leaf"], module.classes["Node"]
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    tree = node(leaf(x), node(leaf(y), leaf(x)))
    expected = torch.tanh(x) + torch.tanh(y) + x
    torch.testing.assert_close(module["total"](tree), expected)
    torch.testing.assert_close(module["total"].interpret(tree), expected)
    found = module["mirror"](node(leaf(x), leaf(y)))
    assert type(found) is node
    torch.testing.assert_close(found.field0.value, y)
    assert repr(leaf(1)) == "Leaf(1)"
    assert repr(node(leaf(1), leaf((2, 3)))) == "Node(Leaf(1), Leaf((2, 3)))"


def test_the_gradient_of_data_is_data() -> None:
    module = relay.parse(DATA)
    leaf, node = module.classes["Leaf"], module.classes["Node"]
    x = torch.tensor([1.0, 2.0])
    slope = relay.grad(module["loss"])(node(leaf(x), leaf(x)))
    assert type(slope) is node
    torch.testing.assert_close(slope.field0.value, 1 - torch.tanh(x) ** 2)
    torch.testing.assert_close(slope.field1.value, torch.ones(2))


def test_lists_and_options_of_relay_are_data() -> None:
    module = relay.parse(DATA)
    numbers = module["numbers"](3)
    assert repr(module["numbers"](2)).startswith("Cons(")
    assert int(numbers.field0) == 3
    some, none = module.classes["Some"], module.classes["None"]
    assert int(module["head"](some(4)).value) == 5
    assert type(module["head"](none())) is none


def test_deep_data_goes_in_and_out() -> None:
    module = relay.parse(DATA)
    found, count = module["numbers"](20_000), 0
    assert len(repr(found)) > 20_000
    while type(found) is module.classes["Cons"]:
        found, count = found.field1, count + 1
    assert count == 20_000


def test_an_argument_of_another_type_is_refused() -> None:
    module = relay.parse(DATA)
    with pytest.raises(RunError):
        module["total"](module.classes["Nil"]())


N = Dim("N")


def windows(x: Tensor[Float, (N,)]) -> Float:
    total = 0.0
    for k in range(3):
        total += relay.sum(x[k : k + 2])
    return total


def test_a_typed_text_whose_loop_finds_sizes_reads_back_and_runs() -> None:
    text = str(relay(windows))
    assert "Size[" in text
    x = torch.arange(5.0)
    again = relay.parse(text)["windows"]
    assert again(x) == again.interpret(x) == relay(windows)(x) == 9.0
