"""Texts of programs changed at random: what still reads and checks runs, or says why not.

Whatever a text says, all that comes out are diagnostics with places, from the parser, inference
and the running program; the verifier finds nothing. `python -m tests.property.test_fuzz_programs
1000 7` tries 1000 texts from seed 7 and writes those that break this; with `json` behind it,
documents.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeVar
from unittest.mock import patch

import pytest
import torch

from pyrelay import CheckError, RelayError, RunError, relay
from pyrelay.ir.dims import Dim
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import AdtDef
from pyrelay.ir.types import (
    AdtType,
    DType,
    RefType,
    SizeType,
    StrType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    dim_names,
    substitution,
)
from pyrelay.runtime.compile import evaluator
from pyrelay.runtime.dispatch import dispatching
from pyrelay.runtime.texts.text_module import ModuleFunction, RelayModule
from pyrelay.text.parser import parse_module
from tests.mutations import changed, changed_document, texts

# A changed program may well have a case that is never reached.
pytestmark = pytest.mark.filterwarnings("ignore::pyrelay.RelayWarning")

T = TypeVar("T")
FUEL: Final = 400
"""The most operators that a changed program runs: it may never end."""
LARGEST: Final = 10_000
"""The most elements in a tensor that it makes."""
INTERNAL: Final = ("TypeError", "KeyError", "AttributeError", "AssertionError", "NameError")


class Spent(BaseException):
    """A program has run for long enough."""


class Unmade(Exception):  # noqa: N818  no mistake
    """There is no argument of a type here."""


def check_of(text: str, random: Random) -> None:
    """Read, check and run a text; only diagnostics with places may come out."""
    found = told(lambda: checked(text))
    if found is None:
        return
    module, typed = found
    written = str(typed)
    assert alpha_equal(parse_module(written), typed.ir), written
    # A function whose types its callers alone decide is part of these.
    for name in (n for n in module if n in typed.ir.functions):
        run(module, typed, name, random)


def run(module: RelayModule, typed: RelayModule, name: str, random: Random) -> None:
    """Run a function of a checked module."""
    function = typed.ir.functions[name]
    sizes = {n: random.randint(1, 3) for p in function.params if p.ty for n in dim_names(p.ty)}
    making = Arguments(module, sizes, random)
    try:
        args = [making.of(p.ty, 3) for p in function.params if p.ty]
    except Unmade:
        return
    told(lambda: interpret(module[name], args))


def checked(text: str) -> tuple[RelayModule, RelayModule]:
    """Return a module and what it is with its types. Raises CheckError."""
    module = relay.parse(text)
    module.check()
    return module, module.typed


def told(run: Callable[[], T]) -> T | None:
    """Return a value, or None where a diagnostic says why there is none."""
    error: RelayError | None = None
    try:
        return run()
    except Spent:
        return None
    except RelayError as raised:
        error = raised
    for found in error.diagnostics:
        is_run = isinstance(error, RunError)
        assert not is_run or not any(word in found.title for word in INTERNAL), str(error)
        assert is_run or found.primary is not None, str(error)
    return None


def interpret(function: ModuleFunction, args: Sequence[Any]) -> Any:
    """Run a function in the evaluator, as long as its fuel lasts."""
    left = [FUEL]
    apply, enter = dispatching.apply, evaluator._Evaluator._enter

    def counted(*given: Any) -> Any:
        left[0] -= 1
        made = apply(*given) if left[0] > 0 else _spent()
        too_large = isinstance(made, torch.Tensor) and made.numel() > LARGEST
        return _spent() if too_large else made

    def entered(self: Any, closure: Any, values: Sequence[Any]) -> Any:
        left[0] -= 1
        return enter(self, closure, values) if left[0] > 0 else _spent()

    counts = patch.object(dispatching, "apply", counted)
    with counts, patch.object(evaluator._Evaluator, "_enter", entered):
        return function.interpret(*args)


def _spent() -> Any:
    raise Spent


class Arguments:
    """Makes arguments of types, at given sizes."""

    def __init__(self, module: RelayModule, sizes: dict[str, int], random: Random) -> None:
        self._module: Final = module
        self._sizes: Final = sizes
        self._random: Final = random

    def of(self, ty: Type, depth: int) -> Any:
        """Return a value of a type."""
        match ty:
            case TensorType(shape, DType() as dtype):
                drawn = torch.randint(-2, 3, [self._number(d) for d in shape])
                return drawn.to(getattr(torch, dtype.name))
            case SizeType(dim):
                return self._number(dim)
            case TupleType(fields):
                return tuple(self.of(f, depth) for f in fields)
            case RefType(content):
                return relay.ref(self.of(content, depth))
            case StrType():
                return "text"
            case AdtType(name, args) if depth and name in self._module.ir.adts:
                return self._data(self._module.ir.adts[name], args, depth)
            case _:
                raise Unmade

    def _data(self, adt: AdtDef, args: tuple[Type | Dim, ...], depth: int) -> Any:
        order = list(adt.constructors)
        self._random.shuffle(order)
        replace = substitution(adt.type_params, args)
        for made in order:
            try:
                fields = [self.of(replace(f), depth - 1) for f in made.fields]
            except Unmade:
                continue
            key = f"{adt.name}::{made.name}"
            if key in self._module.classes:
                return self._module.classes[key](*fields)
        raise Unmade

    def _number(self, dim: Dim) -> int:
        known = {n: Dim.of(v) for n, v in self._sizes.items()}
        found = Substitution(known, {}).dim(dim).constant
        if found is None or not 0 <= found < 10:
            raise Unmade
        return found


def drawn(seed: int) -> tuple[str, Random]:
    """Return the changed text of a seed, and what makes its arguments."""
    random = Random(seed)
    text = random.choice(texts())
    return changed(text, random, random.choice((0, 1, 1, 1, 2, 2, 3, 5))), random


def drawn_document(seed: int) -> tuple[str, Random]:
    """Return a JSON document of a program, with values in it changed."""
    random = Random(seed)
    while True:
        try:
            module = relay.parse(random.choice(texts()))
            module = module.typed if random.random() < 0.3 else module
        except CheckError:
            continue
        return changed_document(module.to_json(), random), random


@pytest.mark.parametrize("seed", range(120))
def test_a_changed_program_ends_in_a_value_or_in_diagnostics(seed: int) -> None:
    check_of(*drawn(seed))


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_document_ends_in_a_value_or_in_diagnostics(seed: int) -> None:
    check_of(*drawn_document(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 3000, 100))
def test_many_changed_programs_end_in_values_or_in_diagnostics(seed: int) -> None:
    for number in range(seed, seed + 100):
        check_of(*drawn(number))
        check_of(*drawn_document(number))


def test_there_are_many_texts() -> None:
    assert len(texts()) > 600


def main(count: int, start: int, draw: Callable[[int], tuple[str, Random]]) -> None:
    """Try texts, and print those that break the rule, each kind once."""
    known: set[str] = set()
    for seed in range(start, start + count):
        text, random = draw(seed)
        try:
            check_of(text, random)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            lines = str(error).splitlines() or [""]
            where = f"{type(error).__name__} at {frame.filename}:{frame.lineno}: {lines[0]}"
            kind = where[:110]
            if kind not in known:
                known.add(kind)
                sys.stdout.write(f"=== seed {seed}: {where}\n{text}\n{error}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{count} texts, {len(known)} kinds of failures\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), drawn_document if "json" in sys.argv else drawn)
