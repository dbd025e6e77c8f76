"""Kernels from their text: written to files, loaded by Triton, compiled for a target.

The text of a kernel is a Python module. It is written to the cache folder under the hash of its
content, so that Triton, tracebacks and profilers find it, and two programs with the same kernel
share it. A file there is only believed if it is, letter for letter, what would be written.

Triton is imported here, when the first kernel is loaded, and nowhere at module level.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, final

from ...config import cache_folder, current
from ...files import replace_file
from ...ir.types import DType
from ...kernels.calling import Argument, Number, Read, Scratch, Size, Stride, Written
from ..kernel import Config, Kernel
from .versions import what_is_missing

_TYPES: Final = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
}
"""Triton's names of dtypes."""


MOST_FILES: Final = 8192
"""The folder of kernels has so many files at most when a process begins to use it: some 20 MB."""

_ALIGNMENT: Final = 16
"""The divisors that Triton looks for in addresses, in bytes, and in integers."""


@final
class NoTriton(Exception):  # noqa: N818  the caller decides what it means
    """Kernels cannot be built here; the message says why and what to do."""


@cache
def triton_module() -> Any:
    """Return Triton. Raises NoTriton where it is missing, too old, or was imported for another way
    of running."""
    interpreted = current().lowering == "triton-interpret"
    if interpreted and "triton" not in sys.modules:
        os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported
    try:
        import triton
    except ImportError as error:
        raise NoTriton("triton is not installed: pip install triton") from error
    missing = what_is_missing(triton, interpreted=interpreted)
    if missing is not None:
        raise NoTriton(missing)
    from triton import knobs

    if interpreted and not knobs.runtime.interpret:
        raise NoTriton("triton was imported before it was set to interpret: set TRITON_INTERPRET=1")
    return triton


@cache
def check_driver() -> None:
    """Have Triton look for its driver of the GPU, and build what it starts kernels with. Raises
    NoTriton where there is none, or no C compiler."""
    driver = triton_module().runtime.driver
    try:
        driver.active.get_current_target()
    except Exception as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise NoTriton(f"triton cannot start kernels: {why}{_compiler()}") from error


def _compiler() -> str:
    """Return the advice where none of the C compilers is installed that Triton takes; else ""."""
    names = [os.environ[n] for n in ("CC",) if n in os.environ] or ["gcc", "clang", "cc"]
    if any(map(shutil.which, names)):
        return ""
    return f"; it needs a C compiler, and there is no {' or '.join(names)}: install gcc"


def triton_error() -> type[Exception]:
    """Return the class of what Triton raises where it cannot compile a kernel, or where a device
    has no room for one. Raises NoTriton."""
    triton_module()
    from triton.errors import TritonError

    return TritonError


def interprets() -> bool:
    """Return whether Triton interprets kernels instead of compiling them. Raises NoTriton."""
    triton_module()
    from triton import knobs

    return bool(knobs.runtime.interpret)


def function_of(kernel: Kernel) -> Any:
    """Return the function of a kernel, as Triton made it. Raises NoTriton."""
    _built[kernel.text] = kernel
    return load(kernel.text, kernel.name)


def built_kernels() -> tuple[Kernel, ...]:
    """Return every kernel that was built in this process, one for each text."""
    return tuple(_built.values())


_built: Final[dict[str, Kernel]] = {}


@cache
def load(text: str, name: str) -> Any:
    """Return the function `name` of a kernel's text, as Triton made it. Raises NoTriton."""
    triton_module()
    path = str(source_file(text, name))
    module = ModuleType(f"pyrelay_kernels.{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # Triton looks functions up by their module
    # Read by whoever wants lines of the kernel, also if its file goes; never checked against it.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    return getattr(module, name)


def source_file(text: str, name: str) -> Path:
    """Return the file that holds a kernel's text, written if it is not there as it should be, and
    can be written at all."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = _folder() / f"{name}_{digest}.py"
    if _holds(path, text):
        return path
    own = _own_folder() / path.name
    return own if _holds(own, text) else path


def _holds(path: Path, text: str) -> bool:
    """Return whether a file holds a text, once it has been written where need be."""
    try:
        with suppress(UnicodeDecodeError, FileNotFoundError):
            if path.read_text(encoding="utf-8") == text:
                return True
        replace_file(path, text)
    except OSError:
        return False
    return True


@cache
def _folder() -> Path:
    """Return the folder of kernels, or one that lives as long as the process where none can be
    written."""
    wanted = cache_folder() / "kernels"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            pass
        _prune(wanted)
    except OSError:
        return _own_folder()
    return wanted


def _prune(folder: Path) -> None:
    """Remove the older half of the files in a folder that has too many. A process that has loaded
    one of them needs it no longer."""
    files = [entry for entry in os.scandir(folder) if entry.is_file()]
    if len(files) <= MOST_FILES:
        return
    for entry in sorted(files, key=lambda e: e.stat().st_mtime)[: -MOST_FILES // 2]:
        Path(entry.path).unlink(missing_ok=True)


@cache
def _own_folder() -> Path:
    """Return a folder that lives as long as the process."""
    made = tempfile.TemporaryDirectory(prefix="pyrelay-kernels-")
    _own_folders.append(made)
    return Path(made.name)


_own_folders: Final[list[tempfile.TemporaryDirectory[str]]] = []
"""They are removed when the process ends."""


def ahead_of_time(
    kernel: Kernel,
    config: Config,
    target: tuple[str, int | str, int],
    *,
    is_aligned: bool = False,
    is_one: bool = False,
) -> Any:
    """Return a kernel compiled for a target, such as ("cuda", 90, 32); no device is needed.

    With `is_aligned` addresses and sizes are multiples of 16, with `is_one` sizes and strides are
    1, which then is a constant: both as Triton assumes when it is called with such.
    """
    triton_module()
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as compile_source

    signature = {n: _signature(a) for n, a in zip(kernel.names, kernel.arguments, strict=True)}
    constants = dict(config.constants)
    if is_one:
        pairs = zip(kernel.names, kernel.arguments, strict=True)
        constants |= {n: 1 for n, a in pairs if isinstance(a, Stride | Size)}
    signature |= dict.fromkeys(constants, "constexpr")
    divisible = [["tt.divisibility", _ALIGNMENT]]
    attributes = {(i,): divisible for i in range(len(kernel.names))} if is_aligned else {}
    source = ASTSource(function_of(kernel), signature, constants, attributes)
    options = launch_options(config)
    return compile_source(source, target=GPUTarget(*target), options=options)


def launch_options(config: Config) -> dict[str, Any]:
    """Return the launch options beside the arguments. A product and a sum may be rounded once, as
    torch's own kernels do."""
    return {
        "num_warps": config.num_warps,
        "num_stages": config.num_stages,
        "num_ctas": config.num_ctas,
        "enable_fp_fusion": True,
    }


def _signature(argument: Argument) -> str:
    match argument:
        case Read(dtype=dtype) | Written(dtype=dtype) | Scratch(dtype=dtype):
            return f"*{type_name(dtype)}"
        case Number(dtype=dtype):
            return type_name(dtype)
        case Stride() | Size():
            return "i32"


def type_name(dtype: DType) -> str:
    """Return Triton's name of a dtype."""
    return _TYPES[dtype.name]
