"""The one table of options: what can be set, from where, and for how long.

Every option is a field of `Options` and reads the environment variable `PYRELAY_<NAME>`. The
environment is read once, at first use; `with options(verify=True):` overrides for a block and for
the tasks started in it. A variable that is no option and looks like one is warned about at import,
with the nearest name.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, final

from .dataclass import dataclass
from .diagnostics.misspelt import nearest
from .registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

PREFIX: Final = "PYRELAY_"


def _switch(variable: str, text: str) -> bool:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "" | "0" | "false" | "no" | "off":
            return False
        case _:
            raise ValueError(f"{variable} is 1 or 0, not {text!r}")


def _directory(variable: str, text: str) -> Path:
    if not text:
        raise ValueError(f"{variable} is empty; set a directory, or unset it")
    from pathlib import Path  # as above

    return Path(text).expanduser().absolute()  # wherever the process goes


def _word(_: str, text: str) -> str | None:
    return text or None


def _words(_: str, text: str) -> str:
    return text


LOWERINGS: Final = (
    *("auto", "torch", "torch-regions", "c", "triton", "triton-interpret", "evaluator"),
)
"""The lowerings that may run tensor code: `auto` is C on a CPU where there is a compiler, built for
what runs again, and torch elsewhere; `torch-regions` calls torch for what kernels would do, group
by group, `c` makes C of them at once."""

ADDED_LOWERINGS: Final[Registry[str]] = Registry()
"""The names of backends from outside the package."""


def lowerings() -> tuple[str, ...]:
    """Return the values of the option `lowering`."""
    return (*LOWERINGS, *ADDED_LOWERINGS.all)


def _lowering(variable: str, text: str) -> str:
    if text not in lowerings():
        raise ValueError(f"{variable} is one of {', '.join(lowerings())}, not {text!r}")
    return text


PRODUCTS: Final = ("measured", "own", "library")
"""The implementations of matrix products in compiled C: its own loops, torch's BLAS, or whichever
was measured to be faster."""


def _products(variable: str, text: str) -> str:
    if text not in PRODUCTS:
        raise ValueError(f"{variable} is one of {', '.join(PRODUCTS)}, not {text!r}")
    return text


LAYOUTS: Final = ("written", "NHWC")
"""The layout of the images of convolutions: as the program is written, or `NHWC`."""


def _layout(variable: str, text: str) -> str:
    if text not in LAYOUTS:
        raise ValueError(f"{variable} is one of {', '.join(LAYOUTS)}, not {text!r}")
    return text


def _count(variable: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"{variable} is a positive number, not {text!r}")
    return int(text)


def _meta(parse: Callable[[str, str], Any], doc: str) -> dict[str, Any]:
    """Return the metadata of a field: how its text is read, and what it does."""
    return {"parse": parse, "doc": doc}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options in effect."""

    verify: bool = field(default=False, metadata=_meta(_switch, "check the IR after every pass"))
    dump_dir: Path | None = field(
        default=None, metadata=_meta(_directory, "write the IR after every pass there")
    )
    device: str | None = field(
        default=None, metadata=_meta(_word, "where new models go, such as `cuda`")
    )
    lowering: str = field(
        default="auto", metadata=_meta(_lowering, f"what runs tensor code: {', '.join(LOWERINGS)}")
    )
    measure: bool = field(
        default=True,
        metadata=_meta(_switch, "time the ways to do an operator, and take the fastest"),
    )
    products: str = field(
        default="measured",
        metadata=_meta(_products, f"what multiplies matrices in C: {', '.join(PRODUCTS)}"),
    )
    layout: str = field(
        default="written",
        metadata=_meta(_layout, f"the layout of images in convolutions: {', '.join(LAYOUTS)}"),
    )
    graphs: bool = field(
        default=True,
        metadata=_meta(_switch, "record regions as CUDA graphs, and replay them"),
    )
    tf32: bool = field(
        default=False,
        metadata=_meta(_switch, "let kernels multiply float32 matrices with the 10 bits of tf32"),
    )
    debug: bool = field(
        default=False,
        metadata=_meta(_switch, "compile programs line by line, with the names of the source"),
    )
    max_depth: int = field(
        default=1_000_000,
        metadata=_meta(_count, "how many calls may wait for each other"),
    )
    cache_dir: Path | None = field(
        default=None,
        metadata=_meta(_directory, "where programs, kernels and measurements are kept"),
    )
    cache: bool = field(
        default=True,
        metadata=_meta(_switch, "keep programs, built C and measurements between processes"),
    )
    logs: str = field(
        default="",
        metadata=_meta(_words, "what to log: `passes,+runtime,-cli`, + for all details"),
    )


class Changes(TypedDict, total=False):
    """The options that a block may override: all of them."""

    verify: bool
    dump_dir: str | Path | None
    device: str | None
    lowering: str
    measure: bool
    products: str
    layout: str
    graphs: bool
    tf32: bool
    debug: bool
    max_depth: int
    cache_dir: str | Path | None
    cache: bool
    logs: str


class UnknownOption(UserWarning):
    """An environment variable looks like an option of pyrelay and is none."""


def from_environment(environ: Mapping[str, str]) -> Options:
    """Return the options that environment variables set. Raises ValueError for a bad value."""
    found: dict[str, Any] = {}
    for variable, option in _variables().items():
        if variable in environ:
            found[option.name] = option.metadata["parse"](variable, environ[variable])
    return Options(**found)


@cache
def _by_name() -> Mapping[str, dataclasses.Field[Any]]:
    return {f.name: f for f in dataclasses.fields(Options)}


def _variables() -> dict[str, dataclasses.Field[Any]]:
    return {PREFIX + name.upper(): option for name, option in _by_name().items()}


def warn_of_unknown(environ: Mapping[str, str], *, stacklevel: int = 2) -> None:
    """Warn of variables that look like options and are none: those with the prefix, and those whose
    whole name is nearly that of an option, such as `PYRELEY_VERIFY`."""
    names = tuple(_variables())
    for variable in sorted(environ):
        has_prefix = variable.upper().startswith(PREFIX)
        if variable in names or not (has_prefix or "REL" in variable):
            continue
        if has_prefix:
            bare = [n.removeprefix(PREFIX) for n in names]
            near = nearest(variable.upper().removeprefix(PREFIX), bare, PREFIX)
        elif (near := nearest(variable.upper(), names, cutoff=0.85)) is None:
            continue
        suggestion = f"did you mean {near}?" if near else f"known are {', '.join(names)}"
        message = f"{variable} is no option; {suggestion}"
        warnings.warn(message, UnknownOption, stacklevel=stacklevel)


def current() -> Options:
    """Return the options in effect here."""
    return _override.get() or _environment()


def is_debugging() -> bool:
    """Return whether programs are compiled for a debugger: the option says so, or one of Python's
    own is tracing, such as pdb."""
    if current().debug:
        return True
    trace = sys.gettrace()
    if trace is None:
        return False
    from bdb import Bdb  # only where something traces

    return isinstance(getattr(trace, "__self__", None), Bdb)


def cache_folder() -> Path:
    """Return the folder for what is kept between processes: the option `cache_dir`, else the user's
    own cache folder. It may not exist yet."""
    chosen = current().cache_dir
    if chosen is not None:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME")
    from pathlib import Path  # as above

    return (Path(base) if base else Path.home() / ".cache") / "pyrelay"


@contextmanager
def options(**changes: Unpack[Changes]) -> Generator[Options, None, None]:
    """Override options inside a `with` block; texts are read as those of the variables. Raises
    ValueError for a value that an option cannot have, and TypeError for one of another type.

    >>> with options(verify=True):
    ...     current().verify
    True
    """
    valid: dict[str, Any] = {name: _valid(name, value) for name, value in changes.items()}
    changed = dataclasses.replace(current(), **valid)
    token = _override.set(changed)
    if "logs" in changes:
        set_log_levels(changed.logs)
    try:
        yield changed
    finally:
        _override.reset(token)
        if "logs" in changes:
            set_log_levels(current().logs)


def _valid(name: str, value: object) -> Any:
    """Return the value of an option. Raises TypeError and ValueError."""
    option = _by_name().get(name)
    if option is None:
        near = nearest(name, _by_name())
        raise TypeError(f"there is no option {name}{f'; did you mean {near}?' if near else ''}")
    parse = option.metadata["parse"]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if (parse is _switch and isinstance(value, bool)) or (value is None and option.default is None):
        return value
    if isinstance(value, str) or (parse is _count and is_number):
        return parse(name, str(value))
    if parse is _directory and isinstance(value, os.PathLike):
        path: os.PathLike[str] = value
        return parse(name, os.fspath(path))
    kind = {_switch: "True or False", _count: "a positive number", _directory: "a directory"}
    raise TypeError(f"{name} is {kind.get(parse, 'a text')}, not {value!r}")


def set_log_levels(logs: str) -> None:
    """Set the levels of pyrelay's loggers from `passes,+runtime,-cache`, and of no others.

    A bare name logs what happened, `+` every detail, `-` errors only; `all` is every logger.
    """
    import logging  # most programs never log

    for name in _levelled:
        logging.getLogger(name).setLevel(logging.NOTSET)
    _levelled.clear()
    for item in filter(None, (part.strip() for part in logs.split(","))):
        level = {"+": logging.DEBUG, "-": logging.ERROR}.get(item[0], logging.INFO)
        bare = item.lstrip("+-")
        name = "pyrelay" if bare == "all" else f"pyrelay.{bare}"
        logging.getLogger(name).setLevel(level)
        _levelled.append(name)
    if _levelled and not logging.getLogger().handlers:
        logging.basicConfig(format="%(name)s: %(message)s")


@cache
def _environment() -> Options:
    found = from_environment(os.environ)
    if found.logs:
        set_log_levels(found.logs)
    return found


_override: Final[ContextVar[Options | None]] = ContextVar("pyrelay_options", default=None)
overriding: Final[Callable[[], Options | None]] = _override.get
"""Returns the options of the innermost block that overrides some; None outside of such blocks.
What is `current()` changes with it alone."""
_levelled: Final[list[str]] = []
"""The loggers whose level was set here, to be unset before the next setting."""


_MAY_COMPILE: Final[ContextVar[bool]] = ContextVar("may_compile", default=True)


@contextmanager
def no_compile() -> Generator[None, None, None]:
    """Refuse to compile anything in the block: a call that would have to raises RunError.

    For code in which a compilation would be a mistake, such as a server's request or a timed loop.
    """
    token = _MAY_COMPILE.set(False)
    try:
        yield
    finally:
        _MAY_COMPILE.reset(token)


def may_compile() -> bool:
    """Return whether compiling is allowed here."""
    return _MAY_COMPILE.get()


warn_of_unknown(os.environ, stacklevel=4)  # at the line that imports pyrelay
