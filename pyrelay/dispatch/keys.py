"""Keys: what a call of an operator is asked by when an implementation is chosen for it.

A call has the keys of all its arguments united: the device, the dtypes, the classes of the dtypes;
and the keys that the code around it includes, which are modes for the most part. The idea and its
words are those of torch's dispatcher (E. Z. Yang, "Let's talk about the PyTorch dispatcher", 2020);
what torch packs into one backend key, device and dtype, are two keys here, and anyone makes more.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Any, Final, cast, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.dispatch import BadKeyName, NoKey
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.misspelt import nearest
from ..ir.types import DTYPES, DType, DTypeKind


class KeyKind(IntEnum):
    """The kinds of keys, in the order in which they are asked."""

    MODE = 0
    DEVICE = 1
    DTYPE = 2
    CLASS = 3


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Key:
    """One key. Keys are compared by identity: two modes of one name are two modes."""

    kind: KeyKind
    name: str

    @property
    def is_of_dtype(self) -> bool:
        """Whether operands have it by their dtype."""
        return self.kind in (KeyKind.DTYPE, KeyKind.CLASS)

    def __repr__(self) -> str:
        return self.name


def mode(name: str) -> Key:
    """Return a new key that calls have where `include` says so.

    >>> mode("Tracing")
    Tracing
    """
    if not isinstance(cast("object", name), str) or not name.isidentifier():
        raise CheckError(BadKeyName(repr(name), "mode"))
    return Key(KeyKind.MODE, name)


def device(name: str) -> Key:
    """Return the key of a type of devices, under the name it has in torch: `cpu`, `cuda`, `xpu`.

    >>> device("cpu") is CPU
    True
    """
    found = _DEVICES.get(name)
    if found is None:
        if not isinstance(cast("object", name), str) or not name.isidentifier():
            raise CheckError(BadKeyName(repr(name), "device"))
        found = _DEVICES.setdefault(name, Key(KeyKind.DEVICE, name))
    return found


CPU: Final = Key(KeyKind.DEVICE, "cpu")
CUDA: Final = Key(KeyKind.DEVICE, "cuda")
META: Final = Key(KeyKind.DEVICE, "meta")
MPS: Final = Key(KeyKind.DEVICE, "mps")
XPU: Final = Key(KeyKind.DEVICE, "xpu")
_DEVICES: Final = {key.name: key for key in (CPU, CUDA, META, MPS, XPU)}
"""The devices that have been named. Those of torch's plug-ins are added when they are."""

FLOAT: Final = Key(KeyKind.CLASS, "float")
"""float32 and float64."""
HALF: Final = Key(KeyKind.CLASS, "half")
"""float16 and bfloat16."""
INT: Final = Key(KeyKind.CLASS, "int")
"""The integers."""
BOOL: Final = Key(KeyKind.CLASS, "bool")

_CLASSES: Final = {key.name: key for key in (FLOAT, HALF, INT, BOOL)}
_DTYPES: Final = {n: Key(KeyKind.DTYPE, n) for n in DTYPES if n not in _CLASSES}


def _class_of(dtype: DType) -> Key:
    match dtype.kind:
        case DTypeKind.BOOL:
            return BOOL
        case DTypeKind.INT:
            return INT
        case DTypeKind.FLOAT:
            return HALF if dtype.bits < 32 else FLOAT


_ORDER: Final = {key: i for i, key in enumerate((*_DTYPES.values(), *_CLASSES.values()))}


@cache
def _keys_of(dtype: DType) -> tuple[Key, ...]:
    """Return the keys of a dtype: itself, but for bool, and its class."""
    own = _DTYPES.get(dtype.name)
    return (_class_of(dtype),) if own is None else (own, _class_of(dtype))


def keys_of_dtypes(dtypes: Iterable[DType]) -> tuple[Key, ...]:
    """Return the keys of dtypes, united, in the order in which they are asked."""
    found = {key for dtype in dtypes for key in _keys_of(dtype)}
    return tuple(sorted(found, key=_ORDER.__getitem__))


def keys_of(given: Any) -> tuple[Key, ...]:
    """Return the keys that a user means: one or several, each a key, the name of a device, dtype or
    class of dtypes, or an element type such as `relay.float16`. Raises CheckError."""
    if isinstance(given, tuple | list | set | frozenset):
        found = [key_of(g) for g in cast("Iterable[Any]", given)]
        return tuple(sorted(dict.fromkeys(found), key=_shown_order))
    return (key_of(given),)


def key_of(given: Any) -> Key:
    """Return one key that a user means. Raises CheckError."""
    if isinstance(given, Key):
        return given
    dtype = getattr(given, "__relay__", None)
    if isinstance(dtype, DType):
        return _keys_of(dtype)[0]
    known = {**_DEVICES, **_DTYPES, **_CLASSES}
    if isinstance(given, str) and given in known:
        return known[given]
    raise CheckError(NoKey(f"{given!r}", nearest(str(given), known)))


def _shown_order(key: Key) -> tuple[int, str]:
    return key.kind, key.name
