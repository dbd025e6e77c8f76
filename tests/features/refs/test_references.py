"""Cells in Python: inside programs, and between programs and scripts."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Fn, Int, Ref, RunError, Tensor, relay

N = Dim("N")


def test_a_cell_is_made_read_and_written() -> None:
    @relay
    def program(x: Float) -> tuple[Float, Float]:
        r = relay.ref(x)
        before = r.value
        r.value = before * 2.0
        r.value += 1.0
        return before, r.value

    assert tuple(map(float, program(3.0))) == (3.0, 7.0)


def test_effects_happen_from_left_to_right() -> None:
    @relay
    def program() -> tuple[tuple[Int, Int, Int], Int, Int]:
        r = relay.ref(0)

        def log(digit: Int) -> Int:
            r.value = r.value * 10 + digit
            return digit

        fields = (log(1), log(2), log(3))
        value = log(4) - log(5) * log(6)
        return fields, value, r.value

    fields, value, log = program()
    assert tuple(map(int, fields)) == (1, 2, 3)
    assert (int(value), int(log)) == (-26, 123456)


def test_the_value_comes_before_the_cell_in_an_assignment_as_in_python() -> None:
    @relay
    def program() -> Int:
        log = relay.ref(0)
        cell = relay.ref(0)

        def note(digit: Int) -> Int:
            log.value = log.value * 10 + digit
            return digit

        def chosen():
            note(2)
            return cell

        chosen().value = note(1)
        chosen().value += note(3)
        return log.value

    assert int(program()) == 1223


def test_effects_in_branches_and_loops() -> None:
    @relay
    def program(n: Int) -> tuple[Int, Int]:
        total, odd = relay.ref(0), relay.ref(0)
        for i in range(n):
            if i % 2 == 0:
                total.value += i
            else:
                odd.value += 1
        while total.value > 15:
            total.value -= 10
            if odd.value > 100:
                break
        return total.value, odd.value

    assert tuple(map(int, program(10))) == (10, 5)


def test_conditions_stop_where_python_stops() -> None:
    @relay
    def program(flag: bool) -> Int:
        r = relay.ref(0)

        def yes(digit: Int) -> bool:
            r.value = r.value * 10 + digit
            return digit > 0

        if (flag and yes(1)) or yes(2):
            yes(3)
        _ = yes(4) if flag else yes(5)
        return r.value

    assert (int(program(True)), int(program(False))) == (134, 235)


def test_closures_over_cells() -> None:
    @relay
    def program() -> tuple[Int, Int, Int]:
        def counter():
            r = relay.ref(0)

            def bump() -> Int:
                r.value += 1
                return r.value

            return bump

        one, two = counter(), counter()
        return one() + one() * 10, two(), one()

    assert tuple(map(int, program())) == (21, 1, 3)


def test_cells_are_passed_given_back_and_held_in_tuples() -> None:
    @relay
    def made(x: Float):
        return relay.ref(x), 1

    @relay
    def doubled(r: Ref[Float]) -> Ref[Float]:
        r.value = r.value * 2.0
        return r

    @relay
    def program(x: Float) -> tuple[Float, Float]:
        pair = made(x)
        other = doubled(doubled(pair[0]))
        other.value += 1.0
        return pair[0].value, other.value

    assert tuple(map(float, program(3.0))) == (13.0, 13.0)


def test_functions_in_cells() -> None:
    @relay
    def program(n: Int) -> Int:
        step = relay.ref(lambda i: i)

        def down(i: Int) -> Int:
            f = step.value
            return 1 if i < 1 else i * f(i - 1)

        step.value = down
        return down(n)

    assert int(program(5)) == 120


def test_a_cell_of_a_polymorphic_function_has_one_type() -> None:
    @relay
    def made(x: Float, n: Int) -> tuple[Float, Int]:
        def fresh(v):
            return relay.ref(v)

        a, b = fresh(x), fresh(n)
        a.value, b.value = a.value + 1.0, b.value + 1
        return a.value, b.value

    first, second = made(1.0, 5)
    assert (float(first), int(second)) == (2.0, 6)


@relay
def bumped(r: Ref[Float], by: Float) -> Float:
    old = r.value
    r.value = old + by
    return old


def test_a_script_and_a_program_share_a_cell() -> None:
    r = relay.ref(1.0)
    assert r.value == 1.0
    assert float(bumped(r, 2.0)) == 1.0
    assert torch.equal(r.value, torch.tensor(3.0))
    r.value = 10
    r.value = 10.0
    assert float(bumped.interpret(r, 0.5)) == 10.0
    assert repr(r) == "ref(tensor(10.5000))"


def test_a_cell_comes_back_as_itself() -> None:
    @relay
    def program(r: Ref[Ref[Float]], s: Ref[Float]) -> tuple[Ref[Float], Ref[Int]]:
        r.value.value = 10.0
        r.value = s
        r.value.value += 1.0
        return r.value, relay.ref(3)

    inner, s = relay.ref(1.0), relay.ref(5.0)
    outer = relay.ref(inner)
    found, made = program(outer, s)
    assert found is s
    assert outer.value is s
    assert (float(inner.value), float(s.value), int(made.value)) == (10.0, 6.0, 3)
    assert isinstance(made, Ref)
    assert isinstance(made.value, torch.Tensor)


def test_a_closure_that_comes_back_keeps_its_cell() -> None:
    @relay
    def counter(start: Int):
        r = relay.ref(start)

        def bump() -> Int:
            r.value += 1
            return r.value

        return r, bump

    r, bump = counter(3)
    assert (int(bump()), int(r.value)) == (4, 4)
    r.value = 50
    assert int(bump()) == 51


def test_an_argument_in_a_cell_is_a_copy() -> None:
    @relay
    def put(r: Ref[Tensor[Float, (N,)]], x: Tensor[Float, (N,)]) -> Float:
        r.value = x
        return r.value.sum()

    r, x = relay.ref(torch.zeros(3)), torch.ones(3)
    put(r, x)
    x[0] = 100.0
    assert torch.equal(r.value, torch.ones(3))
    with pytest.raises(RunError) as caught:
        put(relay.ref(torch.zeros(4)), x)
    assert caught.value.codes == ("RL551",)


def test_what_happened_before_a_failure_has_happened() -> None:
    @relay
    def program(r: Ref[Float], x: Tensor[Float, (N,)]) -> Float:
        r.value = 5.0
        assert x.sum() > 0.0, "negative"
        r.value = 6.0
        return r.value

    r = relay.ref(0.0)
    with pytest.raises(RunError, match="negative"):
        program(r, -torch.ones(2))
    assert float(r.value) == 5.0


def test_a_cell_takes_values_of_its_type() -> None:
    r = relay.ref(1.0)
    bumped(r, 1.0)
    with pytest.raises(RunError) as caught:
        r.value = torch.ones(3)
    assert caught.value.codes == ("RL550",)
    assert float(r.value) == 2.0


def test_gradients_flow_through_cells() -> None:
    @relay
    def program(x: Float, f: Fn[[Float], Float]) -> Float:
        r = relay.ref(x)
        seen = relay.ref(0)
        for _ in range(3):
            r.value = f(r.value) * x
            seen.value += 1
        return r.value * seen.value

    @relay
    def whole(x: Float) -> Float:
        return program(x, lambda y: relay.sin(y))

    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(3):
        y = y.sin() * x
    (expected,) = torch.autograd.grad(3 * y, x, create_graph=True)
    assert float(relay.grad(whole)(0.7)) == pytest.approx(expected.item(), rel=1e-4)
    second = torch.autograd.grad(expected, x)[0]
    assert float(relay.grad(relay.grad(whole))(0.7)) == pytest.approx(second.item(), rel=1e-4)


def test_a_gradient_takes_what_a_cell_held_as_a_constant() -> None:
    @relay
    def program(x: Float, r: Ref[Float]) -> Float:
        r.value = r.value * x
        return r.value * r.value

    r = relay.ref(3.0)
    assert float(relay.grad(program)(2.0, r)) == 36.0
    assert float(r.value) == 6.0
    x = torch.tensor(1.0, requires_grad=True)
    program(x, r).backward()
    assert x.grad is not None
    assert float(x.grad) == 72.0
