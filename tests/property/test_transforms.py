"""Transforms of random programs: a mapped program is a loop of calls, whatever the program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, TypeAlias

import torch
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from pyrelay import CheckError
from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.types import TensorType
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host.compiled import compile_module
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.strategies import Draw, Program, programs
from tests.tolerances import assert_program

HALF = settings(max_examples=settings().max_examples // 2)
FEW = settings(max_examples=settings().max_examples // 10)


def expanded(program: Program, text: str) -> Module:
    """Return the program with a function of a text, its transforms expanded."""
    bare = to_text(program.module).replace(", typed]", "]", 1)
    module = unless_refused(to_anf(infer(parse_module(bare + text))))
    verify(module, Stage.DERIVED)
    return module


def unless_refused(module: Module) -> Module:
    """Return a module with its transforms expanded. Not all data can differ in the elements of a
    batch, nor in those of a batch of batches: what is refused is no example."""
    try:
        return expand_transforms(module)
    except CheckError as error:
        if not {"RL320", "RL321"}.issuperset(error.codes):
            raise
        reject()


Batched: TypeAlias = tuple[bool, ...]
"""Which parameters of `main` are batched."""
DIMS: Final = ("B", "C")
"""The dims of a batch, and of a batch of batches."""


def parameters(program: Program, *batches: Batched) -> tuple[str, str]:
    """Return the parameters of `main` as text, some of them batched by inner and outer batches,
    and their names."""
    found: list[str] = []
    params = program.module.functions["main"].params
    for param, *batched in zip(params, *batches, strict=True):
        ty = param.ty
        assert isinstance(ty, TensorType)
        leading = [dim for dim, is_batched in zip(DIMS, batched, strict=False) if is_batched]
        sizes = (*reversed(leading), *map(str, ty.shape))
        shape = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
        found.append(f"%{param.name}: Tensor[{shape}, {ty.dtype}]")
    names = [f"%{p.name}" for p in params]
    return ", ".join(found), ", ".join(names)


BATCHED: Final = st.tuples(*[st.booleans()] * 5).filter(any)


def variants(draw: Draw, program: Program, count: int) -> list[list[Any]]:
    """Draw arguments of a program, as many times as counted."""
    drawn = (
        replace(program, seed=seed, number=draw(st.integers(-1, 4)), flag=draw(st.booleans()))
        for seed in range(count)
    )
    return [each.arguments() for each in drawn]


@st.composite
def batches(draw: Draw, **options: Any) -> tuple[Program, Batched, list[list[Any]]]:
    """Draw a program, which of its parameters are batched, and its arguments for each element."""
    program, batched = draw(programs(**options)), draw(BATCHED)
    first = program.arguments()
    elements = [
        [new if b else old for new, old, b in zip(drawn, first, batched, strict=True)]
        for drawn in variants(draw, program, draw(st.integers(1, 4)))
    ]
    return program, batched, elements


@st.composite
def batches_of_batches(
    draw: Draw, **options: Any
) -> tuple[Program, Batched, Batched, list[list[list[Any]]]]:
    """Draw a program, which of its parameters the inner and the outer batch have, and its arguments
    for each element of each of the outer."""
    program, inner, outer = draw(programs(**options)), draw(BATCHED), draw(BATCHED)
    columns, rows = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    drawn = variants(draw, program, columns * rows)
    elements = [
        [
            [
                drawn[row * by_row * columns + column * by_column][parameter]
                for parameter, (by_column, by_row) in enumerate(zip(inner, outer, strict=True))
            ]
            for column in range(columns)
        ]
        for row in range(rows)
    ]
    return program, inner, outer, elements


def stacked(elements: list[list[Any]], batched: Batched) -> list[Any]:
    """Return the arguments of all elements as those of one call."""
    columns = zip(*elements, strict=True)
    return [
        torch.stack([torch.as_tensor(x) for x in column]) if b else column[0]
        for column, b in zip(columns, batched, strict=True)
    ]


def together(values: list[Any]) -> Any:
    """Return the results of calls as one result with a batch in front."""
    if isinstance(values[0], tuple):
        return tuple(together(list(column)) for column in zip(*values, strict=True))
    return torch.stack([torch.as_tensor(v) for v in values])


def mapped(program: Program, batched: Batched, function: str = "@main") -> str:
    """Return a text that maps a function of the parameters of `main`."""
    params, names = parameters(program, batched)
    return (
        f"def @mapped[N: Dim, M: Dim, B: Dim]({params}) "
        f"{{ {over(batched)}({function})({names}) }}\n"
    )


def mapped_twice(program: Program, inner: Batched, outer: Batched) -> str:
    """Return a text that maps a function that maps `main`."""
    params, names = parameters(program, inner, outer)
    return mapped(program, inner) + (
        f"def @mapped_twice[N: Dim, M: Dim, B: Dim, C: Dim]({params}) "
        f"{{ {over(outer)}(@mapped)({names}) }}\n"
    )


def over(batched: Batched) -> str:
    """Return the transform that maps over a batch, as text."""
    axes = ", ".join("0" if b else "None" for b in batched)
    return f"vmap{{in_axes=({axes}), out_axes=0}}"


@given(batches())
def test_a_mapped_program_is_a_loop_of_calls(drawn: Any) -> None:
    program, batched, elements = drawn
    module = expanded(program, mapped(program, batched))
    expected = together([evaluate(program.module, "main", each) for each in elements])
    assert_program(evaluate(module, "mapped", stacked(elements, batched)), expected)


@FEW
@given(batches_of_batches(size=5))
def test_a_program_mapped_twice_is_a_loop_in_a_loop(drawn: Any) -> None:
    program, inner, outer, elements = drawn
    module = expanded(program, mapped_twice(program, inner, outer))
    rows = [[evaluate(program.module, "main", each) for each in row] for row in elements]
    expected = together([together(row) for row in rows])
    arguments = stacked([stacked(row, inner) for row in elements], outer)
    assert_program(evaluate(module, "mapped_twice", arguments), expected)


@HALF
@given(batches())
def test_a_mapped_program_simplifies_and_compiles_to_the_same_value(drawn: Any) -> None:
    program, batched, elements = drawn
    module = expanded(program, mapped(program, batched))
    final = with_flavours(simplify(module, "mapped", lambda m, entry: evaluate(m, entry, ())))
    verify(final, Stage.FLAVOURED)
    arguments = stacked(elements, batched)
    compiled = compile_module(final, "mapped", torch.device("cpu"))
    assert_program(compiled(*arguments), evaluate(module, "mapped", arguments))


@HALF
@given(batches(size=5, differentiable=True))
def test_a_mapped_gradient_is_a_loop_of_gradients(drawn: Any) -> None:
    program, batched, elements = drawn
    params, names = parameters(program)
    gradient = f"grad{{wrt=(0, 1, 2), single=False}}(@main)({names})"
    single = f"def @slopes[N: Dim, M: Dim]({params}) {{ {gradient} }}\n"
    module = expanded(program, single + mapped(program, batched, "@slopes"))
    expected = together([evaluate(module, "slopes", each) for each in elements])
    assert_program(evaluate(module, "mapped", stacked(elements, batched)), expected)
