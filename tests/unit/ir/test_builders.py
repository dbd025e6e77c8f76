"""Programs built as data run like any others."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyrelay import relay
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir import builders as b
from pyrelay.ir.equality import alpha_equal
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_module

A, B = b.type_var("A"), b.type_var("B")
EITHER = b.data("Either", [A, B], Left=[A], Right=[B])
NUMBER = b.tensor("int64")
EITHER_OF_NUMBERS = b.data_type(EITHER, NUMBER, b.tensor("bool"))


def swap() -> b.e.Function:
    either, left, right = b.var("either", b.data_type(EITHER, A, B)), b.var("l"), b.var("r")
    body = b.match(
        either,
        (b.case(EITHER, "Left", left), b.call(b.constructor(EITHER, "Right"), left)),
        (b.case(EITHER, "Right", right), b.call(b.constructor(EITHER, "Left"), right)),
    )
    return b.function([either], body, b.data_type(EITHER, B, A), [A, B])


def number_of() -> b.e.Function:
    either, n, flag = b.var("either", EITHER_OF_NUMBERS), b.var("n"), b.var("flag")
    body = b.match(
        either,
        (b.case(EITHER, "Left", n), n),
        (
            b.case(EITHER, "Right", flag),
            b.if_(flag, b.constant(1, "int64"), b.constant(0, "int64")),
        ),
    )
    return b.function([either], body, NUMBER)


def test_the_either_of_the_seed() -> None:
    n, flag = b.var("n", NUMBER), b.var("flag", b.tensor("bool"))
    left, right = b.constructor(EITHER, "Left"), b.constructor(EITHER, "Right")
    main = b.function(
        [n, flag],
        b.tuple_(
            b.call("@number_of", b.call(left, n)),
            b.call("@number_of", b.call(right, flag)),
            b.call("@number_of", b.call("@swap", b.call("@swap", b.call(left, n)))),
        ),
    )
    program = b.module({"swap": swap(), "number_of": number_of(), "main": main}, EITHER)
    for call in (relay.function(program), relay.function(program).interpret):
        assert tuple(map(int, call(5, True))) == (5, 1, 5)
    assert alpha_equal(from_json(to_json(program)), program)


def test_a_built_program_is_the_text_it_looks_like() -> None:
    x, y = b.var("x", b.tensor("float32", "N")), b.var("y")
    body = b.lets([(y, b.call("tanh", x))], b.call("add", y, b.call("multiply", x, 2.0)))
    built = b.module({"main": b.function([x], body)})
    text = "def @main(%x: Tensor[(N,), float32]) { let %y = tanh(%x); %y + %x * 2.0 }"
    assert alpha_equal(built, parse_module(text))


def test_every_form_can_be_built_and_run() -> None:
    x, cell, f, n = b.var("x", b.tensor("float32")), b.var("cell"), b.var("f"), b.var("n", NUMBER)
    down = b.if_(b.call("less", n, 1), 0, b.call(f, b.call("subtract", n, 1)))
    pair, first = b.var("pair"), b.var("first")
    body = b.lets(
        [(cell, b.ref(x)), (b.var("_"), b.write(cell, b.call("add", b.read(cell), 1.0)))],
        b.let_rec(
            {f: b.function([n], down, NUMBER)},
            b.let(
                pair,
                b.tuple_(b.read(cell), b.call(f, 3), "text"),
                b.match(
                    pair,
                    (
                        b.tuple_case(first, b.anything(), b.anything()),
                        b.tuple_(first, b.field(pair, 1)),
                    ),
                ),
            ),
        ),
    )
    value, count = relay.function(b.module({"main": b.function([x], body)}))(1.5)
    assert (float(value), int(count)) == (2.5, 0)


def test_a_built_program_is_differentiated() -> None:
    x = b.var("x", b.tensor("float32", "N"))
    main = relay.function(
        b.module({"main": b.function([x], b.call("sum", b.call("multiply", x, x)))})
    )
    torch.testing.assert_close(relay.grad(main)(torch.tensor([1.0, 2.0])), torch.tensor([2.0, 4.0]))


def test_transforms_literals_guards_and_strings_can_be_built() -> None:
    x, y, word = b.var("x", b.tensor("float32")), b.var("y"), b.var("word", b.string_type())
    square = b.function([x], b.call("multiply", x, x), b.tensor("float32"))
    z = b.var("z", b.tensor("float32"))
    chosen = b.match(
        word,
        (b.literal("slope"), b.call(b.transform("grad", "@square"), z)),
        (b.bind(y), b.constant(1.0, "float32"), b.call("less", z, 0.0)),
        (b.anything(), b.field(b.call(b.transform("value_and_grad", "@square", [0]), z), 0)),
    )
    made = b.module({"square": square, "main": b.function([word, z], chosen)})
    main = relay.function(made, "main")
    given = [("slope", 3.0), ("else", -3.0), ("else", 3.0)]
    assert [float(main(*args)) for args in given] == [6.0, 1.0, 9.0]
    with pytest.raises(ValueError, match="jacobian"):
        b.transform("jacobian", "@square")
    with pytest.raises(TypeError, match="tanh is an operator"):
        b.transform("grad", b.operator("tanh"))


def test_sizes_can_be_parameters() -> None:
    n = b.var("n", b.size_type("N"))
    made = b.function([n], b.call("zeros", size=("N", 2)), None, [b.dim_var("N")])
    with pytest.raises(CheckError, match="a shape is a tuple of integers and sizes"):
        relay.function(b.module({"main": made})).check()
    made = b.function([n], b.call("zeros", size=(b.Dim.of("N"), 2)), None, [b.dim_var("N")])
    assert relay.function(b.module({"main": made}))(3).shape == (3, 2)


def test_attributes_are_what_a_text_can_say() -> None:
    x = b.var("x", b.tensor("float32", "N", 3))
    summed = b.call("sum", b.call("cast", x, dtype="float64"), dim=[np.int64(0)])
    program = relay.function(b.module({"main": b.function([x], summed)}))
    torch.testing.assert_close(program(torch.ones(2, 3)), torch.full((3,), 2.0).double())
    for wrong in ({"a": 1}, torch.float64, object()):
        with pytest.raises(TypeError, match="the attribute `dim` of `sum` cannot be"):
            b.call("sum", x, dim=wrong)
    for value in (None, torch.ones(2)):
        with pytest.raises(TypeError, match="is no expression"):
            b.call("add", x, value)


def test_mistakes_show_the_text_of_the_program() -> None:
    x = b.var("x", b.tensor("float32", 2))
    wrong = b.module(
        {"main": b.function([x], b.call("matmul", x, b.call("reshape", x, shape=(1, 2))))}
    )
    with pytest.raises(CheckError, match=r"<built>:4:3"):
        relay.function(wrong).check()
    with pytest.raises(CheckError, match="not bound here"):
        b.module({"main": b.function([], x)})
    with pytest.raises(KeyError, match="did you mean 'sigmoid'"):
        b.call("sigmiod", x)
    with pytest.raises(KeyError):
        b.constructor(EITHER, "Middle")
    with pytest.raises(KeyError):
        b.case(EITHER, "Middle")
