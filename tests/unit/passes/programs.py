"""Programs for the tests of passes, from text, and comparison of what they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import torch

from pyrelay.infer import infer
from pyrelay.ir.expr import Binding, Expr, Flavour, LetBlock
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import spine
from pyrelay.ir.verify import Stage, verify
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

FOLDER: Final = Path(__file__).parent / "programs"

ARGUMENTS: Final[dict[str, Callable[[], tuple[Any, ...]]]] = {
    "foldable": lambda: (torch.arange(3.0), True),
    "growing_closures": lambda: (torch.tensor(1.0),),
    "lazy_stream": lambda: (torch.tensor(1.0),),
    "list_map": lambda: (torch.tensor(2.0), torch.tensor(3.0)),
    "loop": lambda: (torch.arange(3.0), 4),
    "mutual_recursion": lambda: (4, torch.tensor(7.0)),
    "stored_functions": lambda: (torch.arange(2.0), torch.ones(3, 2), False),
    "cells": lambda: (torch.tensor(2.0), 3),
    "found_sizes": lambda: (torch.tensor([1.0, 0.0, 2.0]),),
}
"""Arguments of the `main` of each program in the folder."""


def typed(text: str) -> Module:
    """Return the typed module of a text."""
    module = infer(parse_module(dedent(text)))
    verify(module, Stage.TYPED)
    return module


def normal(text: str) -> Module:
    """Return the module of a text in A-normal form."""
    module = to_anf(typed(text))
    verify(module, Stage.ANF)
    return module


def program(name: str) -> Module:
    """Return a program of the folder in A-normal form."""
    return normal((FOLDER / f"{name}.relay").read_text(encoding="utf-8"))


def value(module: Module, name: str) -> Any:
    """Return the value of a program of the folder, after some passes, at its arguments."""
    return evaluate(module, "main", ARGUMENTS[name]())


def folding(module: Module, entry: str) -> Any:
    """Return the value of a closed function, for folding."""
    return evaluate(module, entry, ())


def body_of(module: Module, function: str = "main") -> str:
    """Return the lines between the braces of a function, with indentation taken off."""
    alone = Module({function: module.functions[function]}, module.adts)
    text = to_text(alone)
    start = text.index(f"def @{function}")
    lines = text[start:].rstrip().splitlines()
    return dedent("\n".join(lines[1:-1]))


def bindings_of(module: Module, function: str = "main") -> list[Binding]:
    """Return the bindings at the head of a function's body."""
    blocks, _ = spine(module.functions[function].body)
    return [b for block in blocks for b in block.bindings]


def blocks_of(module: Module, function: str = "main") -> list[tuple[Flavour, int]]:
    """Return the flavours of the let blocks at the head of a function's body, and their lengths."""
    blocks, _ = spine(module.functions[function].body)
    return [(b.flavour, len(b.bindings)) for b in blocks]


def end_of(module: Module, function: str = "main") -> Expr:
    """Return what ends a function's body."""
    return spine(module.functions[function].body)[1]


def is_let(expr: Expr) -> bool:
    """Return whether an expression is a let block."""
    return isinstance(expr, LetBlock)
