"""Analyses computed once: results that are kept as long as their subject lives.

Functions and modules never change, so a fact about one of them is found at the first question and
remembered under its identity. A pass that returns a function as it was keeps its facts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from .expr import Function
from .module import Module

Subject = TypeVar("Subject", Function, Module)
Fact = TypeVar("Fact")


def remembered(compute: Callable[[Subject], Fact]) -> Callable[[Subject], Fact]:
    """Return an analysis that computes its result once for each function or module.

    The result must not hold its subject, which would then never be freed.
    """
    known: WeakKeyDictionary[Subject, Fact] = WeakKeyDictionary()

    @wraps(compute)
    def recalled(subject: Subject) -> Fact:
        found = known.get(subject)
        if found is None:
            found = known[subject] = compute(subject)
        return found

    return recalled
