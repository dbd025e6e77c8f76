"""Annotations, in all spellings, as types."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Annotated, Any

import pytest

import pyrelay
from pyrelay import Bool, Dim, Float, Fn, Int, Model, Tensor
from pyrelay.diagnostics.source import SourceFile
from pyrelay.ir.types import show
from pyrelay.translate.types.annotation import AnnotationReader

N, M = Dim("N"), Dim("M")
Image = Tensor[Float, (N, 28)]
NAMESPACE = {
    "Annotated": Annotated,
    "Any": Any,
    "Bool": Bool,
    "Callable": Callable,
    "Float": Float,
    "Fn": Fn,
    "Image": Image,
    "Int": Int,
    "M": M,
    "Model": Model,
    "N": N,
    "Tensor": Tensor,
    "bfloat16": pyrelay.relay.bfloat16,
    "pyrelay": pyrelay,
}


def read(text: str) -> tuple[Any, list[Any]]:
    problems: list[Any] = []
    file = SourceFile("f.py", text)
    node = ast.parse(text, mode="eval").body
    reader = AnnotationReader(dict(NAMESPACE), problems.append)
    return reader.read(node, file.span_of_ast(node)), problems


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Tensor[Float, (N, 3)]", "Tensor[Float, (N, 3)]"),
        ("Tensor[(N, 3), Float]", "Tensor[Float, (N, 3)]"),
        ("Tensor[Int, 5]", "Tensor[Int, (5,)]"),
        ("Tensor[Int, N]", "Tensor[Int, (N,)]"),
        ("Tensor[Bool, ()]", "Bool"),
        ("Tensor[bfloat16, (2 * N + 1, N // 2, N - M)]", None),
        ("Tensor[float, (N,)]", "Tensor[Float, (N,)]"),
        ("Image", "Tensor[Float, (N, 28)]"),
        ("'Tensor[Float, (N, 3)]'", "Tensor[Float, (N, 3)]"),
        ('Float[Tensor, "batch 3"]', "Tensor[Float, (batch, 3)]"),
        ('Float[Tensor, "n n+1"]', "Tensor[Float, (n, n + 1)]"),
        ("Float", "Float"),
        ("float", "Float"),
        ("int", "Int"),
        ("bool", "Bool"),
        ("None", "None"),
        ("N", 'Dim("N")'),
        ("Annotated[int, N]", 'Dim("N")'),
        ("Annotated[int, pyrelay.Dim('K')]", 'Dim("K")'),
        ("pyrelay.Dim('K') + 1", 'Dim("K + 1")'),
        ("tuple[Float, tuple[Int, Bool]]", "tuple[Float, tuple[Int, Bool]]"),
        ("Fn[[Float, Int], Bool]", "Fn[[Float, Int], Bool]"),
        ("Callable[[Image], Float]", "Fn[[Tensor[Float, (N, 28)]], Float]"),
        ("tuple[Float, ...]", "list[Float]"),
        ("tuple[tuple[Float, Int], ...]", "list[tuple[Float, Int]]"),
        ("Tensor[Float, (Any, 3, Any)]", "Tensor[Float, (any1, 3, any2)]"),
        ("Tensor[Float, ...]", "Tensor[Float, (...)]"),
        ("Tensor[Float, (N, ...)]", "Tensor[Float, (N, ...)]"),
        ("Tensor[Float, (..., 3)]", "Tensor[Float, (..., 3)]"),
    ],
)
def test_an_annotation_reads_as_a_type(text: str, shown: str | None) -> None:
    found, problems = read(text)
    assert problems == []
    if shown is not None:
        assert show(found.ty) == shown


def test_pythons_numbers_are_remembered() -> None:
    assert read("float")[0].python is float
    assert read("Float")[0].python is None


def test_a_model_names_its_definition() -> None:
    assert read("Model")[0].model.definition is None
    assert read("Model[len]")[0].model.definition is len


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Tensor", "RL103"),
        ("Tensor[Float]", "RL103"),
        ("Tensor[Float, Int]", "RL103"),
        ("Tensor[Float, (N, -1)]", "RL103"),
        ("Tensor[Float, (N, 1.5)]", "RL103"),
        ("Tensor[Float, (N, True)]", "RL103"),
        ('Tensor[Float, "n 3"]', "RL103"),
        ("dict[str, Float]", "RL103"),
        ("Float | None", "RL103"),
        ("tuple[Float, Int, ...]", "RL103"),
        ("Any", "RL103"),
        ("object", "RL103"),
        ("N / 0", "RL103"),
        ("Unknown[Float]", "RL101"),
        ("tuple[Model]", "RL103"),
    ],
)
def test_what_is_no_type_is_a_mistake(text: str, code: str) -> None:
    found, problems = read(text)
    assert found is None
    assert [p.diagnostic().code for p in problems] == [code]
    assert problems[0].diagnostic().primary.span.text == text
