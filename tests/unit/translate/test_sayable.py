"""What Python has no words for is printed in others, which mean the same."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay
from pyrelay.decorators import RelayFunction
from pyrelay.ir.rules import same_as_operand
from tests.python_text import assert_reads_back, load

K, N, M = Dim("K"), Dim("N"), Dim("M")


def both(text: str, folder: Path) -> tuple[Any, Any, str]:
    """Return `main` of a text, what its Python compiles to, and the Python."""
    main = relay.parse(f'#[pyrelay = "1"]\n{text}')["main"]
    printed = assert_reads_back(main.module, "main", folder)
    again = load(printed, folder)["main"]
    assert isinstance(again, RelayFunction)
    return main, again, printed


def body_of(printed: str) -> str:
    return printed[printed.index("def main") :].rstrip()


def test_a_match_that_may_fail_raises_in_a_last_case(tmp_path: Path) -> None:
    main, again, printed = both(
        "def @main(%n: int64) -> int64 { match? (%n) { 1 => { 10 }, 2 => { 20 } } }", tmp_path
    )
    assert "case _:" in printed
    for n in (1, 2):
        assert again(n) == main(n)
    for function in (main, again):
        with pytest.raises(RunError, match="no case matches the value"):
            function(3)


def test_one_that_cannot_fail_after_all_gets_no_case_more(tmp_path: Path) -> None:
    _, _, printed = both(
        "def @main(%p: (int64, int64)) -> int64 { match? (%p) { (%a, %b) => { %a } } }", tmp_path
    )
    assert "case _" not in printed


@pytest.mark.filterwarnings("ignore:this case is never reached")
def test_cases_behind_one_that_takes_all_are_left_out(tmp_path: Path) -> None:
    main, again, printed = both(
        "def @main(%n: int64) -> int64 { match (%n) { 1 => { 10 }, %m => { %m }, 2 => { 20 } } }",
        tmp_path,
    )
    assert printed.count("case ") == 2
    assert [again(n) for n in (1, 2)] == [main(n) for n in (1, 2)] == [10, 2]


def test_a_guard_that_is_no_expression_is_a_local_function(tmp_path: Path) -> None:
    main, again, printed = both(
        """
        def @main(%n: int64, %k: int64) -> int64 {
          match (%n) {
            %m if { let %d = %m * %k; if (%d > 4) { %d < 20 } else { %d == %d } } => { %m },
            _ => { 0 - %k },
          }
        }
        """,
        tmp_path,
    )
    assert "case m_1 if guard(m_1):" in printed
    for n in range(6):
        assert again(n, 5) == main(n, 5)


def test_a_guard_of_a_match_that_is_bound_stands_before_it(tmp_path: Path) -> None:
    main, again, _ = both(
        """
        def @main(%n: int64) -> int64 {
          let %x = match (%n) {
            %m if { let %d = %m * %m; %d + %d > 10 } => { %m },
            %m if True => { %m + 1 },
            _ => { 0 },
          };
          %x + %x
        }
        """,
        tmp_path,
    )
    assert [again(n) for n in (1, 5)] == [main(n) for n in (1, 5)] == [4, 10]


def test_a_case_for_what_is_there_comes_before_that_for_none(tmp_path: Path) -> None:
    main, again, printed = both(
        """
        def @main(%a: prelude.Option[int64], %b: prelude.Option[int64]) -> int64 {
          match ((%a, %b)) {
            (prelude.Option::Some(%x), prelude.Option::Some(%y)) => { %x + %y },
            (prelude.Option::None(), prelude.Option::Some(%y)) => { %y },
            _ => { 0 },
          }
        }
        """,
        tmp_path,
    )
    assert "case (Some(x), Some(y)):" in printed
    for args in ((1, 2), (None, 2), (1, None), (None, None)):
        assert again(*args) == main(*args)


def test_type_arguments_are_said_where_arguments_do_not_tell_them(tmp_path: Path) -> None:
    main, again, printed = both(
        """
        def @f[N: Dim, M: Dim](%x: Tensor[(N * M,), float32]) -> Tensor[(N * M,), float32] {
          sin(%x)
        }
        def @main(%x: Tensor[(6,), float32]) -> Tensor[(6,), float32] { @f[2, 3](%x) }
        """,
        tmp_path,
    )
    assert "return f[3, 2](x)" in printed  # in the order of the sizes in the product
    assert torch.equal(again(torch.ones(6)), main(torch.ones(6)))


def test_the_larger_of_two_sizes_stands_in_types(tmp_path: Path) -> None:
    main, again, printed = both(
        """
        def @main[N: Dim, M: Dim](
          %x: Tensor[(N, M), float32], %y: Tensor[(max(N - 1, 0), min(N, M)), float32]
        ) -> Tensor[(max(N - 1, 0),), float32] {
          ones(size=(max(N - 1, 0),))
        }
        """,
        tmp_path,
    )
    assert "((N - 1).at_least(0), M.at_most(N))" in printed
    x, y = torch.ones(3, 2), torch.ones(2, 2)
    assert torch.equal(again(x, y), main(x, y))


def test_the_new_buffers_of_a_layer_that_does_not_train_are_the_old(tmp_path: Path) -> None:
    main, again, _ = both(
        """
        def @main(%x: Tensor[(4, 2), float32], %m: Tensor[(2,), float32], %v: Tensor[(2,), float32])
            -> (Tensor[(4, 2), float32], Tensor[(2,), float32], Tensor[(2,), float32]) {
          let %all = batch_norm(%x, %m, %v, (), (), training=False);
          (%all.0, %all.2, %all.1)
        }
        """,
        tmp_path,
    )
    args = torch.rand(4, 2), torch.rand(2), torch.rand(2)
    for a, b in zip(again(*args), main(*args), strict=True):
        assert torch.equal(a, b)


def test_what_nests_deep_becomes_functions(tmp_path: Path) -> None:
    test = "".join(f"let %a{i} = if (%n > {i}) {{ " for i in range(90))
    ends = "".join(f" }} else {{ {i} }}; %a{i} + 1" for i in reversed(range(90)))
    main, again, printed = both(f"def @main(%n: int64) -> int64 {{ {test} 90 {ends} }}", tmp_path)
    assert "def part(" in printed
    assert [again(n) for n in (0, 50, 200)] == [main(n) for n in (0, 50, 200)]


def test_functions_nest_as_deep(tmp_path: Path) -> None:
    head = "".join(f"let %f{i} = fn (%x{i}: int64) -> int64 {{ " for i in range(70))
    ends = "".join(f" }}; %f{i}(%n + {i})" for i in reversed(range(70)))
    main, again, _ = both(f"def @main(%n: int64) -> int64 {{ {head} %x3 * %x69 {ends} }}", tmp_path)
    assert again(5) == main(5) == 8 * 74


@relay
def summed(data: Iterable[tuple[Tensor[Float, (M,)], Int]], y: Tensor[Float, (N,)]) -> Float:
    total = y.sum()
    for x, k in data:
        total += x.sum() * k
    return total


@relay
def passed_on(data: Iterable[tuple[Tensor[Float, (M,)], Int]], y: Tensor[Float, (N,)]) -> Float:
    return summed(data, y)


@pytest.mark.parametrize("function", [summed, passed_on])
def test_iterables_are_read_by_the_operators_of_a_loop(
    function: RelayFunction[..., Any], tmp_path: Path
) -> None:
    printed = assert_reads_back(function.module, function.__name__, tmp_path)
    assert "data: Iterable[tuple[Tensor[Float, (M,)], Int]]" in printed
    again = load(printed, tmp_path)[function.__name__]
    data = [(torch.ones(n), n) for n in (1, 2, 3)]
    assert again(data, torch.ones(2)) == function(data, torch.ones(2)) == 16.0


@relay.operator(type_rule=same_as_operand(), samples=())
def halved(x: torch.Tensor, *, times: int = 1) -> torch.Tensor:
    """Halve."""
    return x / 2**times


@relay
def quarter(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return halved(halved(x), times=3)


def test_an_operator_of_ones_own_is_imported(tmp_path: Path) -> None:
    printed = assert_reads_back(quarter.module, "quarter", tmp_path)
    assert f"from {__name__} import halved\n" in printed
    again = load(printed, tmp_path)["quarter"]
    assert torch.equal(again(torch.ones(2)), quarter(torch.ones(2)))


def test_one_that_no_module_has_is_asked_for_by_name(tmp_path: Path) -> None:
    @relay.operator(type_rule=same_as_operand(), samples=())
    def doubled(x: torch.Tensor, *, times: int = 1) -> torch.Tensor:
        """Double."""
        return x * 2**times

    @relay
    def twice(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return doubled(doubled(x), times=2)

    printed = twice.show("python")
    assert "no module has them as a name:\n# doubled: the operator `test_one_that" in printed
    given = {"doubled": doubled}
    assert assert_reads_back(twice.module, "twice", tmp_path, given) == printed
    again = load(printed, tmp_path, given)["twice"]
    assert torch.equal(again(torch.ones(2)), twice(torch.ones(2)))


def test_two_operators_of_one_name_are_told_apart(tmp_path: Path) -> None:
    def scaled(by: float) -> Any:
        @relay.operator(type_rule=same_as_operand(), samples=())
        def times(x: torch.Tensor) -> torch.Tensor:
            """Scale."""
            return x * by

        return times

    first, second = scaled(2.0), scaled(3.0)

    @relay
    def both(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return first(x) + second(x)

    given = {"times": first, "times_1": second}
    printed = assert_reads_back(both.module, "both", tmp_path, given)
    again = load(printed, tmp_path, given)["both"]
    assert torch.equal(again(torch.ones(2)), torch.full((2,), 5.0))


@relay
def between(x: Tensor[Float, (N,)], i: Int, j: Int) -> Tensor[Float, (K,)]:
    return x[i:j] * 2.0


@relay
def picked(x: Tensor[Float, (N,)]) -> Float:
    chosen = relay.nonzero(x > 0)
    return relay.zeros((chosen.shape[0], 2)).sum()


@pytest.mark.parametrize("function", [between, picked])
def test_sizes_found_while_running_are_named_by_what_shows_them(
    function: RelayFunction[..., Any], tmp_path: Path
) -> None:
    assert_reads_back(function.module, function.__name__, tmp_path)
