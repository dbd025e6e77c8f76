"""All mistakes pyrelay can name, one file per family.

    language     RL1xx  Python that is not the language, sources
    names        RL1xx  names that mean nothing where they stand
    captures     RL1xx  objects from outside that cannot be used
    signatures   RL1xx  annotations, and calls that do not fit
    sites        RL1xx  mentions of models
    data         RL15x  data types that users define
    lists        RL17x  lists
    types        RL2xx  types and shapes
    dtypes       RL2xx  dtypes
    undetermined RL2xx  types that cannot be inferred
    sizes        RL2xx  sizes
    patterns     RL2xx  patterns of `match`
    layouts      RL23x  layouts of images
    gradient     RL3xx  derivatives
    batching     RL32x  functions mapped over a batch
    derivatives  RL34x  derivatives that users write
    specialise   RL35x  fixed arguments of functions
    model        RL4xx  models and their parameters
    run          RL5xx  failures while a program runs
    call         RL55x  calls of compiled functions from scripts
    dispatch     RL58x  implementations of operators
    text         RL6xx  the IR's text form

An entry is a frozen dataclass whose fields are what happened, whose `diagnostic()` says it, and
whose docstring explains it. Callers import entries from their family's file; `entries` finds them
all, for the documentation and for the tests.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping, Sequence
from functools import cache

from ..diagnostic import Problem


def entries() -> tuple[type[Problem], ...]:
    """Return every entry of the catalogue, family by family in the order of the alphabet."""
    found: list[type[Problem]] = []
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda i: i.name):
        family = importlib.import_module(f"{__name__}.{info.name}")
        found += [
            value
            for value in vars(family).values()
            if dataclasses.is_dataclass(value)
            and isinstance(value, type)
            and value.__module__ == family.__name__
            and issubclass(value, Problem)
        ]
    return tuple(found)


@cache
def by_code() -> Mapping[str, Sequence[type[Problem]]]:
    """Return the entries that have each code, in the order of the codes. An entry writes its code
    where it makes a diagnostic, so it is read off there."""
    found: dict[str, list[type[Problem]]] = {}
    for entry in entries():
        for code in re.findall(r'code="(RL\d+)"', inspect.getsource(entry)):
            known = found.setdefault(code, [])
            if entry not in known:
                known.append(entry)
    return dict(sorted(found.items()))
