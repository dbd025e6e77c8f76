"""Programs in text, brought to their last stage and run by both executors."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import CompiledProgram, compile_module
from pyrelay.text.parser import parse_module

CPU = torch.device("cpu")


def prepared(source: str) -> Module:
    """Return a program in its last stage."""
    return with_flavours(to_anf(infer(parse_module(source))))


def compiled(source: str, entry: str = "main") -> CompiledProgram:
    """Return a program as host code."""
    return compile_module(prepared(source), entry, CPU)


def run_both(source: str, *args: Any, entry: str = "main") -> Any:
    """Return the value of a program, which must be the same in both executors."""
    module = prepared(source)
    expected = evaluate(module, entry, args)
    actual = compile_module(module, entry, CPU)(*args)
    assert_same(actual, expected)
    return actual


def assert_same(actual: Any, expected: Any) -> None:
    """Check that two run-time values are equal; a number may be a 0-d tensor."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    elif isinstance(expected, str | int):
        assert actual == expected
    else:
        torch.testing.assert_close(torch.as_tensor(actual), torch.as_tensor(expected))
