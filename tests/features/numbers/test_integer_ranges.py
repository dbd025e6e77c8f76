"""Single integers of 64 bits never leave them, narrower ones wrap around as elements of tensors do:
for numbers and 0-d tensors, whatever runs the program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, int8, int16, int32, relay, uint8
from pyrelay.config import options
from pyrelay.prelude import List

N = Dim("N")
HIGHEST, LOWEST = 2**63 - 1, -(2**63)
LOWERINGS = ["torch", "evaluator", "torch-regions"]  # no kernel computes single integers


@pytest.fixture(params=LOWERINGS)
def _anywhere(request: pytest.FixtureRequest) -> Iterator[None]:
    with options(lowering=request.param):
        yield


def code_of(error: CheckError | RunError) -> str:
    """Return the code of the one mistake."""
    (diagnostic,) = error.diagnostics
    return diagnostic.code


@relay
def added(a: int, b: int) -> int:
    return a + b


@relay
def subtracted(a: int, b: int) -> int:
    return a - b


@relay
def multiplied(a: int, b: int) -> int:
    return a * b


@relay
def divided(a: int, b: int) -> int:
    return a // b


@relay
def remainder(a: int, b: int) -> int:
    return a % b


@relay
def power(a: int, b: int) -> int:
    return a**b


@relay
def negated(a: int, b: int) -> int:
    return -a + b


@relay
def absolute(a: int, b: int) -> int:
    return abs(a) + b


FITS: list[tuple[Any, int, int, int]] = [
    (added, HIGHEST, 0, HIGHEST),
    (added, HIGHEST, LOWEST, -1),
    (subtracted, LOWEST, -1, LOWEST + 1),
    (subtracted, -1, HIGHEST, LOWEST),
    (multiplied, 2**31, -(2**32), LOWEST),
    (multiplied, HIGHEST, -1, LOWEST + 1),
    (divided, LOWEST, 1, LOWEST),
    (divided, HIGHEST, -1, LOWEST + 1),
    (divided, -7, 2, -4),
    (remainder, LOWEST, -1, 0),
    (remainder, -7, 3, 2),
    (power, -2, 63, LOWEST),
    (power, 2, 62, 2**62),
    (power, -1, 10**12, 1),
    (power, 0, 10**12, 0),
    (negated, HIGHEST, 0, LOWEST + 1),
    (absolute, LOWEST + 1, 0, HIGHEST),
]
LEAVES: list[tuple[Any, int, int]] = [
    (added, HIGHEST, 1),
    (added, LOWEST, -1),
    (subtracted, LOWEST, 1),
    (subtracted, 0, LOWEST),
    (multiplied, 2**32, 2**31),
    (multiplied, LOWEST, -1),
    (divided, LOWEST, -1),
    (power, 2, 63),
    (power, 10, 10**12),
    (power, -2, 64),
    (negated, LOWEST, 0),
    (absolute, LOWEST, 0),
]


@pytest.mark.usefixtures("_anywhere")
@pytest.mark.parametrize("kind", [int, torch.tensor])
@pytest.mark.parametrize(("function", "a", "b", "expected"), FITS)
def test_what_fits_into_64_bits_is_exact(
    function: Any, a: int, b: int, expected: int, kind: Callable[[int], Any]
) -> None:
    assert function(kind(a), kind(b)) == expected
    assert function(a, kind(b)) == expected


@pytest.mark.usefixtures("_anywhere")
@pytest.mark.parametrize("kind", [int, torch.tensor])
@pytest.mark.parametrize(("function", "a", "b"), LEAVES)
def test_what_leaves_64_bits_stops_the_program_at_its_line(
    function: Any, a: int, b: int, kind: Callable[[int], Any]
) -> None:
    for first, second in ((kind(a), kind(b)), (a, kind(b))):
        with pytest.raises(RunError) as caught:
            function(first, second)
        assert code_of(caught.value) == "RL512"
        assert "return" in str(caught.value)


@relay
def narrow(a: int8, b: uint8, c: int16, d: int32):
    return a + 1, a * a, -a, abs(a), b - 1, -b, b**3, c + c, d * d, a // -1


@pytest.mark.usefixtures("_anywhere")
@pytest.mark.parametrize("kind", [lambda n, _: n, lambda n, d: torch.tensor(n, dtype=d)])
def test_narrower_integers_wrap_around_as_elements_of_tensors_do(kind: Any) -> None:
    dtypes = (torch.int8, torch.uint8, torch.int16, torch.int32)
    for numbers in ((-128, 0, 32767, 2**31 - 1), (127, 255, -32768, -(2**31)), (3, 5, 7, 11)):
        found = narrow(*map(kind, numbers, dtypes))
        a, b, c, d = (torch.tensor([n], dtype=t) for n, t in zip(numbers, dtypes, strict=True))
        expected = (a + 1, a * a, -a, abs(a), b - 1, -b, b**3, c + c, d * d)
        for one, other in zip(found, expected, strict=False):
            assert torch.equal(one, other[0])
        assert found[-1].item() == (-128 if numbers[0] == -128 else -numbers[0])


@relay
def elements(x: Tensor[Int, (N,)]):
    return x + 1, x * x, -x, abs(x), x.sum()


@pytest.mark.usefixtures("_anywhere")
def test_elements_of_64_bits_wrap_around_as_in_torch() -> None:
    x = torch.tensor([HIGHEST, LOWEST, 5])
    for one, other in zip(elements(x), (x + 1, x * x, -x, abs(x), x.sum()), strict=True):
        assert torch.equal(one, other)


@relay
def converted(n: int):
    return relay.cast(n, int32), relay.cast(n, uint8), relay.cast(n, int8) + 1


@pytest.mark.usefixtures("_anywhere")
@pytest.mark.parametrize("n", [2**40 + 255, 127, -1, HIGHEST])
def test_a_cast_to_a_narrower_integer_wraps_around(n: int) -> None:
    whole = torch.tensor([n])
    expected = (whole.to(torch.int32), whole.to(torch.uint8), whole.to(torch.int8) + 1)
    for given in (n, torch.tensor(n)):
        for one, other in zip(converted(given), expected, strict=True):
            assert torch.equal(one, other[0])


@relay
def whole_number(x: Float) -> int:
    return int(x)


@relay
def cast_number(x: Float):
    return relay.cast(x, int32) + relay.cast(0, int32)


@pytest.mark.usefixtures("_anywhere")
def test_a_float_becomes_the_integer_towards_zero() -> None:
    assert [whole_number(x) for x in (1.75, -1.75, -(2.0**63))] == [1, -1, LOWEST]
    assert [cast_number(x).item() for x in (1.75, -1.75, -(2.0**31))] == [1, -1, -(2**31)]


@pytest.mark.usefixtures("_anywhere")
@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf, 1e30, 2.0**63])
def test_a_float_without_an_integer_stops_the_program(x: float) -> None:
    for function in (whole_number, cast_number):
        with pytest.raises(RunError) as caught:
            function(x)
        assert code_of(caught.value) == "RL517"


def test_a_tensor_of_floats_is_cast_as_torch_casts_it() -> None:
    @relay
    def cast(x: Tensor[Float, (N,)]):
        return relay.cast(x, relay.int64)

    x = torch.tensor([1.5, math.nan, 1e30])
    assert torch.equal(cast(x), x.to(torch.int64))


@pytest.mark.usefixtures("_anywhere")
def test_a_generator_of_random_numbers_is_the_same_for_a_number_and_a_tensor() -> None:
    @relay
    def drawn(seed: int, n: int) -> int:
        for _ in range(n):
            seed = (1103515245 * seed + 12345) % 2147483648
        return seed

    expected = 7
    for _ in range(20):
        expected = (1103515245 * expected + 12345) % 2147483648
    assert drawn(7, 20) == drawn(torch.tensor(7), 20) == expected


@pytest.mark.usefixtures("_anywhere")
def test_a_sum_of_integers_in_a_list_does_not_leave_64_bits() -> None:
    @relay
    def total(xs: List[int]) -> int:
        return sum(xs)

    assert total([2**62, 2**62 - 1]) == HIGHEST
    with pytest.raises(RunError, match="does not fit into 64 bits"):
        total([2**62, 2**62])


@pytest.mark.usefixtures("_anywhere")
def test_a_product_of_sizes_does_not_leave_64_bits() -> None:
    @relay
    def cube(n: Dim("n")):
        return n * n * n

    assert cube(2**20).item() == 2**60
    with pytest.raises(RunError, match="does not fit into 64 bits"):
        cube(2**21)


@pytest.mark.usefixtures("_anywhere")
def test_the_text_of_relay_wraps_around_at_32_bits() -> None:
    text = '#[version = "0.0.5"]\ndef @main() -> bool { let %x = 2147483647; (%x + 1) < 0 }'
    assert relay.parse(text)["main"]().item() is True


def test_a_literal_that_no_integer_of_its_dtype_is_is_a_mistake() -> None:
    @relay
    def alone() -> int:
        return 9223372036854775808

    @relay
    def beside_bytes(x: Tensor[uint8, (N,)]):
        return x + 300

    @relay
    def lowest() -> int:
        return -9223372036854775808

    for function in (alone, beside_bytes):
        with pytest.raises(CheckError) as caught:
            function.check()
        assert code_of(caught.value) == "RL228"
    assert lowest() == LOWEST


def test_a_division_of_literals_by_zero_stops_the_running_program() -> None:
    @relay
    def zero() -> int:
        x = 0
        return True % x

    with pytest.raises(RunError) as caught:
        zero()
    assert code_of(caught.value) == "RL503"


def test_counters_of_loops_and_sizes_are_not_looked_at() -> None:
    @relay
    def counted(x: Tensor[Float, (N,)], n: int) -> int:
        found = 0
        for _ in range(n):
            for j in range(len(x)):
                found = j
        return found + len(x) * 2 % 7

    text = counted.show("host")
    assert text.count("exactly") == 1  # of `found + ...` alone
    assert counted(torch.ones(5), 2) == 7


def test_a_step_is_looked_at_where_no_test_has_bounded_the_number() -> None:
    @relay
    def stepped(n: int, m: int) -> int:
        found = n
        if n < m:
            found = n + 1
        elif n <= m:
            found = n + 2
        elif m < n:
            found = m + 2
        return found

    text = stepped.show("host")
    assert text.count("exactly") == 2  # of the two steps by 2
    with pytest.raises(RunError, match="does not fit into 64 bits"):
        stepped(HIGHEST, HIGHEST)
    assert stepped(HIGHEST - 1, HIGHEST) == HIGHEST


def test_an_exported_program_stops_where_the_program_does() -> None:
    text = "def @main(%a: int64, %b: int64) -> int64 { %a * %b }"
    exported = relay.parse(text)["main"]
    with pytest.raises(RunError, match="does not fit into 64 bits"):
        exported(2**40, 2**40)
