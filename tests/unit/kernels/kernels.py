"""Kernel functions for tests, from text."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

from pyrelay.infer import infer
from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.kernels.calling import Layout
from pyrelay.kernels.pipeline import REGIONS
from pyrelay.lower_triton import lower as triton
from pyrelay.lower_triton.kernel import Lowered, Target
from pyrelay.passes.base import Context
from pyrelay.passes.manager import run_passes
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.text.parser import parse_module
from tests.unit.kernels.recognised import group_of


def module(text: str) -> Module:
    """Return the module of a text in A-normal form, typed."""
    found = with_flavours(to_anf(infer(parse_module(dedent(text)))))
    verify(found, Stage.FLAVOURED)
    return found


def in_regions(module: Module, entry: str = "main") -> Module:
    """Return a module in kernels and regions."""
    return run_passes(module, Stage.FLAVOURED, REGIONS.passes, Context(entry=entry))[0]


def kernel(text: str) -> Function:
    """Return the one function of a text."""
    (function,) = module(text).functions.values()
    return function


def lower(function: Function) -> Callable[..., Lowered]:
    """Return what makes the Triton kernels of a function for a layout of its operands, and for a
    target, which may be left out."""
    group = group_of(function)

    def lowered(layout: Layout, target: Target | None = None) -> Lowered:
        return triton.lower(group, layout, target or Target())

    return lowered
