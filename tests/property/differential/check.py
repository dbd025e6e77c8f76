"""One program in both ways: what pyrelay makes of a source, and what Python does."""

from __future__ import annotations

import itertools
import linecache
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from types import ModuleType
from typing import Any, Final

import torch

from pyrelay import CheckError, RunError
from pyrelay.config import options
from tests.property.differential.arguments import plain, taken
from tests.property.differential.programs import HEADER, Drawn
from tests.property.differential.reference import (
    NUDGE,
    Reference,
    SpentError,
    Undefined,
    UndefinedError,
    contains_undefined,
    gradients,
    is_close,
    tensor,
)

RTOL: Final = 2e-4
INTERNAL: Final = ("RL506", "RL599")
"""Failures of an operator, or of the compiler, that no program should show."""
DIFFERENTIABLE: Final = ("Float", "Vec", "Mat", "Floats")
SECONDS: Final = 60


@dataclass(frozen=True)
class Outcome:
    """What came of a program."""

    kind: str
    """`equal`, `refused`, `raised`, `unstable`, `spent`, or the kind of a failure."""
    detail: str = ""

    @property
    def name(self) -> str:
        """Return the kind; of a refusal with the code and title of the error."""
        return f"refused {self.detail.splitlines()[0]}" if self.kind == "refused" else self.kind

    @property
    def failed(self) -> bool:
        """Return whether this is a fault."""
        return self.kind not in ("equal", "refused", "raised", "unstable", "spent")


def outcome(drawn: Drawn, lowering: str = "auto") -> Outcome:
    """Run a program in both ways, and compare."""
    source = HEADER + drawn.source
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        with options(lowering=lowering):
            return _outcome(source, drawn)
    except TimeoutError:
        return Outcome("hangs")
    finally:
        signal.alarm(0)


def _late(*_: Any) -> None:
    raise TimeoutError


def _outcome(source: str, drawn: Drawn) -> Outcome:
    params, calls = drawn.params, drawn.calls
    try:
        reference = Reference(source)
    except Exception as error:
        return Outcome(f"reference {type(error).__name__}", str(error))
    try:
        names = _loaded(source)
    except CheckError as error:
        return _refused(error)
    compared = 0
    last = Outcome("spent")
    for call in calls:
        try:
            expected = _expected(reference, drawn, call)
        except Exception as error:
            text = "".join(traceback.format_exception(error)[-4:])
            return Outcome(f"reference {type(error).__name__}", f"{call}\n{text}")
        if expected is None:
            continue
        last = _compare(source, names, drawn, call, expected)
        if last.failed or last.kind == "refused":
            return last
        compared += last.kind == "equal"
        if last.kind == "equal" and drawn.result == "Float" and set(DIFFERENTIABLE) & set(params):
            last = gradients_differ(source, names, drawn, call) or last
            if last.failed:
                return last
    return Outcome("equal") if compared else last


def gradients_differ(
    source: str, names: dict[str, Any], drawn: Drawn, call: Sequence[Any]
) -> Outcome | None:
    """Compare the gradient of `main` with that of torch."""
    expected = _gradient(Reference(source), drawn, call, 0.0)
    if expected is None:
        return None
    wanted = tuple(f"p{i}" for i, k in enumerate(drawn.params) if k in DIFFERENTIABLE)
    gradient = names["relay"].grad(names["main"], wrt=wanted)
    shown = f"grad(main)({', '.join(map(repr, call))})"
    try:
        with redirect_stdout(StringIO()):
            found = gradient(*[taken(a, k, names) for a, k in zip(call, drawn.params, strict=True)])
    except CheckError as error:
        return _refused(error)
    except TimeoutError:
        raise
    except RunError as error:
        if Undefined.made:
            return None
        return Outcome(f"gradient RunError {error.diagnostics[0].code}", f"{shown}\n{error}")
    except Exception as error:
        return Outcome(*_internal(error, shown))
    found = tuple(found)
    difference = differs(found, expected, 2 * RTOL)
    if difference is None:
        return None
    for by in (NUDGE, -NUDGE):
        moved = _gradient(Reference(source, nudged=True), drawn, call, by)
        if moved is None or differs(moved, expected, 20 * RTOL, True) is not None:
            return Outcome("unstable")
    return Outcome(f"wrong gradient {difference}", f"{shown}\n{_show(found)} instead of {expected}")


def _gradient(
    reference: Reference, drawn: Drawn, call: Sequence[Any], by: float
) -> tuple[Any, ...] | None:
    args: list[Any] = []
    for value, kind in zip(call, drawn.params, strict=True):
        args.append(plain(value if by == 0.0 else _moved(value, by), kind, reference.names))
    wanted = [a for a, k in zip(args, drawn.params, strict=True) if k in DIFFERENTIABLE]
    flat = [t for a in wanted for t in (a if isinstance(a, list) else [a])]
    for leaf in flat:
        leaf.requires_grad_()
    try:
        value = tensor(reference.run("main", args))
    except (SpentError, RecursionError, ArithmeticError, LookupError, ValueError, UndefinedError):
        return None
    if not isinstance(value, torch.Tensor):
        return None
    found = iter(gradients(value, flat))
    return tuple([next(found) for _ in a] if isinstance(a, list) else next(found) for a in wanted)


def _loaded(source: str) -> dict[str, Any]:
    module = ModuleType("program")
    linecache.cache["<program>"] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        "<program>",
    )
    sys.modules["program"] = module
    exec(compile(source, "<program>", "exec", dont_inherit=True), vars(module))
    return vars(module)


@dataclass(frozen=True)
class _Expected:
    value: Any = None
    printed: str = ""
    raised: BaseException | None = None
    is_certain: bool = False
    """The value depends on an integer that does not exist."""
    has_undefined: bool = False
    """An integer did not exist somewhere, though the value may not depend on it."""


def _expected(reference: Reference, drawn: Drawn, call: Sequence[Any]) -> _Expected | None:
    args = [plain(a, k, reference.names) for a, k in zip(call, drawn.params, strict=True)]
    value, raised = None, None
    try:
        value = reference.run("main", args)
    except (SpentError, RecursionError):
        return None
    except (ArithmeticError, LookupError, ValueError, UndefinedError) as error:
        raised = error
    is_certain = contains_undefined(value)
    if is_certain:
        raised = UndefinedError()
    printed = "".join(f"{line}\n" for line in reference.printed)
    return _Expected(value, printed, raised, is_certain, Undefined.made > 0)


def _compare(
    source: str, names: dict[str, Any], drawn: Drawn, call: Sequence[Any], expected: _Expected
) -> Outcome:
    shown = f"main({', '.join(map(repr, call))})"
    args = [taken(a, k, names) for a, k in zip(call, drawn.params, strict=True)]
    written = StringIO()
    try:
        with redirect_stdout(written):
            found = names["main"](*args)
    except CheckError as error:
        return _refused(error)
    except RunError as error:
        return _raised(error, expected, shown, written.getvalue())
    except TimeoutError:
        raise
    except Exception as error:
        return Outcome(*_internal(error, shown))
    if isinstance(expected.raised, UndefinedError) and not expected.is_certain:
        return Outcome("unstable")  # what it decides may not be needed, and is then left out
    if expected.raised is not None:
        what = type(expected.raised).__name__
        return Outcome(f"no {what}", f"{shown}\n{found} where Python raises {expected.raised!r}")
    if written.getvalue() != expected.printed:
        text = f"{written.getvalue()} instead of {expected.printed}"
        return Outcome("wrong text", f"{shown}\n{text}")
    difference = differs(found, expected.value)
    if difference is None:
        return Outcome("equal")
    if _is_unstable(source, drawn.params, call, expected.value):
        return Outcome("unstable")
    text = f"{_show(found)} instead of {expected.value}"
    return Outcome(f"wrong {difference}", f"{shown}\n{text}")


def _raised(error: RunError, expected: _Expected, shown: str, written: str) -> Outcome:
    """Judge a failure of the running program, which Python should show as well."""
    first = error.diagnostics[0]
    if first.code in INTERNAL or (expected.raised is None and not expected.has_undefined):
        return Outcome(f"RunError {first.code} {first.title}", f"{shown}\n{error}")
    if not expected.has_undefined and written != expected.printed:
        return Outcome("wrong text", f"{shown}\n{written} instead of {expected.printed}")
    return Outcome("raised")


def _show(found: Any) -> str:
    return str([_show(f) for f in found]) if isinstance(found, list | tuple) else str(found)


def _refused(error: CheckError) -> Outcome:
    first = error.diagnostics[0]
    return Outcome(
        "refused", f"{first.code} {re.sub(r'`[^`]*`|-?[0-9]{3,}', '_', first.title)}\n{error}"
    )


def _internal(error: Exception, shown: str) -> tuple[str, str]:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/pyrelay/" in f.filename]
    place = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    where = f"{place.filename.split('/pyrelay/')[-1]}:{place.name}"
    text = "".join(traceback.format_exception(error)[-8:])
    return f"{type(error).__name__} at {where}", f"{shown}\n{text}"


def _is_unstable(source: str, params: Sequence[str], call: Sequence[Any], expected: Any) -> bool:
    """Return whether the value hangs on the last digits of its floats."""
    nudged = Reference(source, nudged=True)
    for by in (NUDGE, -NUDGE):
        args = [plain(_moved(a, by), k, nudged.names) for a, k in zip(call, params, strict=True)]
        try:
            value = nudged.run("main", args)
        except Exception:
            return True
        if contains_undefined(value) or differs(value, expected, 20 * RTOL, True) is not None:
            return True
    return False


def _moved(value: Any, by: float) -> Any:
    """Return data with its floats moved, each by another little bit."""
    steps = itertools.count(1)

    def moved(part: Any) -> Any:
        if isinstance(part, float):
            return part + by * (abs(part) + 1 / next(steps))
        return type(part)(map(moved, part)) if isinstance(part, list | tuple) else part

    return moved(value)


def differs(found: Any, expected: Any, rtol: float = RTOL, is_plain: bool = False) -> str | None:
    """Return how two values differ, or None."""
    if expected is None or found is None:
        return None if expected is found else "None"
    fields = getattr(expected, "__dataclass_fields__", None)
    if fields is not None:
        if type(found).__name__ != type(expected).__name__:
            return "class"
        pairs = [(getattr(found, n), getattr(expected, n)) for n in fields]
        return _first_difference(pairs, rtol, is_plain)
    if isinstance(expected, tuple | list):
        if isinstance(found, torch.Tensor | int | float):
            return "structure"
        items = list(found)
        if len(items) != len(expected):
            return "length"
        return _first_difference(list(zip(items, expected, strict=True)), rtol, is_plain)
    return _number_differs(found, expected, rtol, is_plain)


def _first_difference(pairs: list[tuple[Any, Any]], rtol: float, is_plain: bool) -> str | None:
    found = (differs(one, other, rtol, is_plain) for one, other in pairs)
    return next((f for f in found if f is not None), None)


def _number_differs(found: Any, expected: Any, rtol: float, is_plain: bool) -> str | None:
    found, wanted = torch.as_tensor(found), torch.as_tensor(_plain_number(expected))
    if found.shape != wanted.shape:
        return "shape"
    is_float = wanted.dtype.is_floating_point
    if not is_plain and is_float and found.dtype != torch.float32:
        return "dtype"
    if not is_plain and found.dtype not in (torch.float32, torch.int64, torch.bool):
        return "dtype"
    if not is_float and not found.dtype.is_floating_point:
        return None if torch.equal(found, wanted) else "integer"
    pairs = zip(found.flatten().tolist(), wanted.float().flatten().tolist(), strict=True)
    return None if all(is_close(f, w, rtol) for f, w in pairs) else "value"


def _plain_number(value: Any) -> Any:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
