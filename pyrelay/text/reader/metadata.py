"""The `#[metadata]` section of a Relay text: what `meta[relay.Constant][0]` stands for.

The section is JSON: a table of nodes that mention each other by number. Node `root` maps type keys
to arrays of nodes; the elements of constants are in `b64ndarrays`, in the layout in which TVM saves
an array: a magic number, the device, rank, dtype, shape, and the bytes, all little-endian.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Mapping
from typing import Any, Final, final

from ...ir.expr import TensorData
from ...ir.types import DTYPES, DType

_MAGIC: Final = 0xDD5E40F096B4A13F
_HEAD: Final = struct.Struct("<QQiiiBBH")
_CODES: Final = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
_FAILURES: Final = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


class Unreadable(Exception):  # noqa: N818  becomes a diagnostic where the metadata is mentioned
    """Metadata without the entry that is asked for, and why."""


@final
class Metadata:
    """The nodes of one section. Everything raises `Unreadable` for what is not there."""

    def __init__(self, text: str | None) -> None:
        self._text: Final = text
        self._document: Mapping[str, Any] | None = None

    def constant(self, key: str, number: int) -> TensorData:
        """Return the elements of constant `number`."""
        if key != "relay.Constant":
            raise Unreadable(f"it is a {key}, and only constants are read")
        node = self._node(key, number)
        try:
            saved = self._read()["b64ndarrays"][int(node["attrs"]["data"])]
            return _array(base64.b64decode(saved, validate=True))
        except _FAILURES as error:
            raise Unreadable(f"the array is damaged ({error})") from error

    def integer(self, key: str, number: int) -> int:
        """Return the value of integer `number`."""
        node = self._node(key, number)
        try:
            return int(node["attrs"]["value"])
        except _FAILURES as error:
            raise Unreadable(f"it is a {key}, not an integer") from error

    def name(self, key: str, number: int) -> str | None:
        """Return the name of size variable `number`; None where the node is no variable."""
        found = self._node(key, number).get("attrs", {})
        name = found.get("name", found.get("name_hint"))
        if isinstance(name, str) and name.isdigit():  # the number of a string node
            name = self._string(int(name))
        return name if isinstance(name, str) and name else None

    def _string(self, number: int) -> str | None:
        try:
            return self._read()["nodes"][number].get("repr_str")
        except _FAILURES:
            return None

    def _node(self, key: str, number: int) -> Mapping[str, Any]:
        document = self._read()
        try:
            nodes = document["nodes"]
            root = nodes[document["root"]]
            array = nodes[root["data"][root["keys"].index(key)]]
            node = nodes[array["data"][number]]
        except _FAILURES as error:
            raise Unreadable("the metadata section has no such entry") from error
        if not isinstance(node, dict):
            raise Unreadable("the metadata section has no such entry")
        return node

    def _read(self) -> Mapping[str, Any]:
        if self._text is None:
            raise Unreadable("the text has no metadata section")
        if self._document is None:
            try:
                document = json.loads(self._text)
            except (ValueError, RecursionError) as error:
                raise Unreadable(f"the metadata section is no JSON ({error})") from error
            if not isinstance(document, dict):
                raise Unreadable("the metadata section is no JSON object")
            self._document = document
        return self._document


def _array(saved: bytes) -> TensorData:
    """Return the elements of a saved array. Raises ValueError or struct.error if it is none."""
    magic, _, _, _, rank, code, bits, lanes = _HEAD.unpack_from(saved)
    if magic != _MAGIC:
        raise ValueError("it does not start as one")
    shape = struct.unpack_from(f"<{rank}q", saved, _HEAD.size)
    (count,) = struct.unpack_from("<q", saved, _HEAD.size + 8 * rank)
    data = saved[_HEAD.size + 8 * rank + 8 :]
    dtype = _dtype(code, bits, lanes)
    if any(n < 0 for n in shape) or not len(data) == count == math.prod(shape) * dtype.bits // 8:
        raise ValueError(f"{len(data)} bytes do not fill the shape {shape}")
    return TensorData(dtype, shape, data)


def _dtype(code: int, bits: int, lanes: int) -> DType:
    name = "bool" if (code, bits) == (1, 1) else f"{_CODES.get(code, '?')}{bits}"
    if name not in DTYPES or lanes != 1:
        raise ValueError(f"elements of dtype {name} are not supported")
    return DTYPES[name]
