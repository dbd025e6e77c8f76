"""Transforms of random programs: a mapped program is a loop of calls, whatever the program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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


def parameters(program: Program, batched: tuple[bool, ...] = (False,) * 5) -> tuple[str, str]:
    """Return the parameters of `main` as text, some of them batched, and their names."""
    found: list[str] = []
    for param, is_batched in zip(program.module.functions["main"].params, batched, strict=True):
        ty = param.ty
        assert isinstance(ty, TensorType)
        sizes = (*("B",) * is_batched, *map(str, ty.shape))
        shape = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
        found.append(f"%{param.name}: Tensor[{shape}, {ty.dtype}]")
    names = [f"%{p.name}" for p in program.module.functions["main"].params]
    return ", ".join(found), ", ".join(names)


@st.composite
def batches(draw: Draw, **options: Any) -> tuple[Program, tuple[bool, ...], list[list[Any]]]:
    """Draw a program, which of its parameters are batched, and its arguments for each element."""
    program = draw(programs(**options))
    batched = draw(st.lists(st.booleans(), min_size=5, max_size=5).filter(any))
    first = program.arguments()
    elements: list[list[Any]] = []
    for seed in range(draw(st.integers(1, 4))):
        drawn = replace(
            program, seed=seed, number=draw(st.integers(-1, 4)), flag=draw(st.booleans())
        ).arguments()
        elements.append(
            [new if b else old for new, old, b in zip(drawn, first, batched, strict=True)]
        )
    return program, tuple(batched), elements


def stacked(elements: list[list[Any]], batched: tuple[bool, ...]) -> list[Any]:
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


def mapped(program: Program, batched: tuple[bool, ...], function: str = "@main") -> str:
    """Return a text that maps a function of the parameters of `main`."""
    params, names = parameters(program, batched)
    axes = ", ".join("0" if b else "None" for b in batched)
    return (
        f"def @mapped[N: Dim, M: Dim, B: Dim]({params}) "
        f"{{ vmap{{in_axes=({axes}), out_axes=0}}({function})({names}) }}\n"
    )


@given(batches())
def test_a_mapped_program_is_a_loop_of_calls(drawn: Any) -> None:
    program, batched, elements = drawn
    module = expanded(program, mapped(program, batched))
    expected = together([evaluate(program.module, "main", each) for each in elements])
    assert_program(evaluate(module, "mapped", stacked(elements, batched)), expected)


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
