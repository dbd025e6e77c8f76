"""`run FILE.relay --arg VALUE ...`: the value of a function of a text, at arguments.

An argument is a number, a bool, a list of numbers, a shape such as `(2, 3)` that is filled at
random, or an array from a file: `x.npy`, `x.npz:name`, `x.safetensors:name`. `name=` before it says
which parameter it is for.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from ..ir.types import DTypeKind, TensorType
from .load import LoadError, entry_of, load_text

if TYPE_CHECKING:
    import torch

    from ..ir.expr import Function

_FILES: Final = (".npy", ".npz", ".safetensors")
_LOW, _HIGH = 0, 10


def run(file: Path, entry: str | None, arguments: Sequence[str], seed: int) -> int:
    """Print the value of a function. Raises LoadError, CheckError and RunError."""
    module = load_text(file)
    name = entry_of(module, entry)
    function = module[name]
    reader = _Arguments(function.module.functions[name], seed)
    args, kwargs = reader.read(arguments)
    result = function(*args, **kwargs)
    sys.stdout.write(f"{result!s}\n")
    return 0


@final
class _Arguments:
    """Reads arguments for a function, whose types decide the dtypes of what is made up."""

    def __init__(self, function: Function, seed: int) -> None:
        import torch

        self._params: Final = function.params
        self._generator: Final = torch.Generator().manual_seed(seed)

    def read(self, texts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments by position and by name. Raises LoadError."""
        types = {p.name: p.ty for p in self._params}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for text in texts:
            name, separator, value = text.partition("=")
            if separator and name in types:
                kwargs[name] = self._value(value, types[name])
                continue
            position = len(args)
            ty = self._params[position].ty if position < len(self._params) else None
            args.append(self._value(text, ty))
        return args, kwargs

    def _value(self, text: str, ty: object) -> Any:
        name, separator, _ = text.partition("=")
        if separator and name.isidentifier():
            known = ", ".join(p.name for p in self._params) or "none"
            raise LoadError(f"there is no parameter {name}; the parameters are {known}")
        path, _, key = text.partition(":")
        if path.endswith(_FILES):
            return _array(Path(path), key)
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            shown = "a number, a list, a shape or a file of arrays"
            raise LoadError(f"the argument {text!r} is not {shown}") from None
        if isinstance(value, tuple) and all(type(n) is int and n >= 0 for n in value):
            return self._random(value, ty)
        if isinstance(value, list):
            return self._listed(text, value, ty)
        return value

    def _random(self, shape: tuple[int, ...], ty: object) -> torch.Tensor:
        import torch

        dtype = _dtype(ty)
        if dtype.is_floating_point:
            return torch.randn(shape, generator=self._generator).to(dtype)
        high = 2 if dtype is torch.bool else _HIGH
        return torch.randint(_LOW, high, shape, generator=self._generator).to(dtype)

    def _listed(self, text: str, value: Any, ty: object) -> torch.Tensor:
        import torch

        try:
            return torch.tensor(value, dtype=_dtype(ty))
        except (TypeError, ValueError, RuntimeError) as error:
            raise LoadError(f"the argument {text!r} is no tensor: {error}") from None


def _dtype(ty: object) -> torch.dtype:
    """Return the dtype of a parameter; float32 where it is not a tensor."""
    import torch

    from ..lower_torch.constants import torch_dtype

    if isinstance(ty, TensorType) and isinstance(getattr(ty.dtype, "kind", None), DTypeKind):
        return torch_dtype(ty.dtype)  # pyright: ignore[reportArgumentType]  its kind is a dtype's
    return torch.float32


def _array(file: Path, key: str) -> Any:
    """Return an array from a file; its only one where `key` is empty. Raises LoadError."""
    try:
        found = _arrays(file)
    except Exception as error:  # each library has its own errors for a file that is not its own
        raise LoadError(f"{file} cannot be read: {error}") from None
    if not key and len(found) == 1:
        return next(iter(found.values()))
    if key in found:
        return found[key]
    raise LoadError(f"say which array: {file}:NAME; it has {', '.join(found) or 'none'}")


def _arrays(file: Path) -> dict[str, Any]:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(file))
    import numpy as np

    read = np.load(file, allow_pickle=False)
    return {"": read} if isinstance(read, np.ndarray) else dict(read)
