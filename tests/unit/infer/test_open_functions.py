"""Global functions whose types are inferred from their uses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, relay
from pyrelay.infer.polymorphism import open_functions
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.types import show
from tests.relay.reading import HEADER

PLUS = "def @plus(%x, %y) { %x + %y }"


def types_of(text: str) -> dict[str, str]:
    """Return the types of the functions of a module, as they are after inference."""
    return {n: show(f.ty) for n, f in relay.parse(HEADER + text).typed.ir.functions.items()}


def value(text: str, *args: Any) -> Any:
    """Return the value of `@main`, on which the executors agree."""
    main = relay.parse(HEADER + text)["main"]
    found = main(*args)
    torch.testing.assert_close(main.interpret(*args), found)
    return found


def test_a_function_has_the_type_at_which_it_is_used() -> None:
    text = f"{PLUS} def @main() {{ @plus(1, @plus(2, 3)) }}"
    assert types_of(text) == {"plus": "Fn[[int32, int32], int32]", "main": "Fn[[], int32]"}
    assert value(text) == 6


def test_each_type_at_which_a_function_is_used_is_a_function_of_its_own() -> None:
    text = f"{PLUS} def @main() {{ (@plus(1, 2), @plus(1f, 2f), @plus(3, 4)) }}"
    assert types_of(text) == {
        "plus": "Fn[[int32, int32], int32]",
        "plus_2": "Fn[[Float, Float], Float]",
        "main": "Fn[[], tuple[int32, Float, int32]]",
    }
    assert value(text) == (3, 3.0, 7)


def test_a_name_that_is_taken_is_not_used_again() -> None:
    text = f"""{PLUS} def @plus_2(%x: int32) {{ %x }}
    def @main() {{ (@plus(1, 2), @plus(1f, 2f), @plus_2(5)) }}"""
    assert set(types_of(text)) == {"plus", "plus_3", "plus_2", "main"}
    assert value(text) == (3, 3.0, 5)


def test_functions_without_types_use_each_other() -> None:
    text = f"""{PLUS}
    def @sums(%p) {{ (@plus(%p.0, %p.0), @plus(%p.1, %p.1)) }}
    def @main() {{ (@sums((1, 2f)), @plus(1i64, 2i64)) }}
    """
    assert types_of(text)["sums"] == "Fn[[tuple[int32, Float]], tuple[int32, Float]]"
    assert value(text) == ((2, 4.0), 3)


def test_functions_that_recurse_through_each_other_are_typed_together() -> None:
    text = """
    def @even(%n, %one) { if (%n < %one) { True } else { @odd(%n - %one, %one) } }
    def @odd(%n, %one) { if (%n < %one) { False } else { @even(%n - %one, %one) } }
    def @main() { (@even(3, 1), @odd(3i64, 1i64), @even(4f, 1f)) }
    """
    assert value(text) == (False, True, True)
    assert {"even", "odd", "even_2", "odd_2", "even_3", "odd_3"} < types_of(text).keys()


def test_a_local_function_that_is_given_is_typed_by_its_call() -> None:
    text = """
    def @adder(%x) { fn (%y) { %x + %y } }
    def @add_two() { @adder(2f) }
    def @twice() { fn (%z) { %z + %z } }
    def @main() { (@add_two()(3f), @twice()(4), @twice()(5f)) }
    """
    assert value(text) == (5.0, 8, 10.0)


def test_sizes_of_the_user_stay_with_the_user() -> None:
    text = f"""{PLUS}
    def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?), float32]) {{
      (@plus(%x, %x), @plus(%y, %y), @plus(1f, 2f))
    }}
    """
    assert types_of(text)["plus"] == "Fn[[Float, Float], Float]"
    x, y = torch.rand(2, 3), torch.rand(4)
    torch.testing.assert_close(value(text, x, y), (2 * x, 2 * y, torch.tensor(3.0)))
    typed = relay.parse(HEADER + text).typed
    assert alpha_equal(relay.parse(str(typed)).ir, typed.ir)


def test_a_polymorphic_function_uses_one_without_types_at_its_own() -> None:
    text = """
    def @swap(%p) { (%p.1, %p.0) }
    def @flipped[A, B](%x: A, %y: B) -> (B, A) { @swap((%x, %y)) }
    def @main() { (@flipped(1, 2f), @flipped((), True)) }
    """
    assert types_of(text)["flipped"] == "Fn[[A, B], tuple[B, A]]"
    assert value(text) == ((2.0, 1), (True, None))


def test_type_parameters_that_are_written_hold_at_each_use() -> None:
    text = """
    def @folded[S, I](%f, %init: S, %xs: List[I]) -> S {
      let %step: fn (S, I) -> S = fn (%s: S, %x: I) { %f(%s, %x).0 };
      @foldl(%step, %init, %xs)
    }
    def @main() {
      (@folded(fn (%s, %x) { (%s + %x, 1) }, 0, Cons(1, Cons(2, Nil))),
       @folded(fn (%s, %x) { (%x, %s) }, 1f, Cons(3f, Nil)))
    }
    """
    assert value(text) == (3, 3.0)


def test_a_function_without_types_is_passed_on_and_differentiated() -> None:
    text = f"""{PLUS}
    def @main() -> float32 {{ @foldl(@plus, 0f, Cons(1f, Cons(2.5f, Nil))) }}
    def @square(%x) {{ %x * %x }}
    def @loss(%x: float32) {{ @square(@square(%x)) }}
    """
    module = relay.parse(HEADER + text)
    assert module["main"]() == 3.5
    assert relay.grad(module["loss"])(2.0) == 32.0


def test_a_chain_of_functions_without_types_is_typed_from_its_end() -> None:
    functions = "".join(
        f"def @f{i + 1}(%x) {{ let %y = @f{i}(%x); %y + %y }}\n" for i in range(1000)
    )
    text = f"def @f0(%x) {{ %x * %x }}\n{functions} def @main() {{ @f1000(0f) }}"
    assert types_of(text)["f500"] == "Fn[[Float], Float]"


def doubled(times: int) -> str:
    """Return a program in which each of `times` functions uses the one before in two places."""
    functions = "".join(f"def @f{i + 1}(%x) {{ @f{i}(%x) + @f{i}(%x) }}\n" for i in range(times))
    return f"def @f0(%x) {{ %x + %x }}\n{functions} def @main() {{ @f{times}(1f) }}"


def test_copies_of_copies_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(types_of(doubled(200))) == 202
    monkeypatch.setattr(open_functions, "LIMIT", 3)
    assert value(doubled(6)) == 2.0**7
    # Beyond the limit the places share a copy, so one function has one type.
    with pytest.raises(CheckError, match="float32"):
        types_of(f"{PLUS} def @main() {{ {'(@plus(1, 2), ' * 4} @plus(1f, 2f){')' * 4} }}")


@pytest.mark.parametrize("name", ["plus", "scaled"])
def test_a_function_that_a_script_calls_alone_has_no_type(name: str) -> None:
    module = relay.parse(f"{HEADER}{PLUS} def @scaled(%x) {{ @plus(%x, 1f) }}")
    with pytest.raises(CheckError, match=f"call `{name}` in a function") as caught:
        module[name](1.0, 2.0)
    assert caught.value.codes == ("RL221",)
