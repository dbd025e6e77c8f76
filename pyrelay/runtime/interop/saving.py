"""The file of a saved model: one safetensors file, which never contains code.

    metadata    one entry, `pyrelay`: the manifest as JSON (who is called how, names, checksum)
    .program    a tensor of bytes: the program as text, whose header says its version
    conv.weight every parameter, buffer and key under its own name

The program is a tensor because the header of a safetensors file is bounded and a program is not;
its name is one that no parameter can have. The metadata is a single entry because the library
writes several in no fixed order. The checksum is taken over all else, so a file that was cut or
changed is refused as such instead of giving other numbers.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, final

import torch

from ...dataclass import dataclass
from ...diagnostics.catalogue.model import (
    DamagedModel,
    NotASavedModel,
    NotSaveable,
    UnknownModelVersion,
)
from ...diagnostics.diagnostic import CheckError, RunError
from ...ir.expr import Call
from ...ir.module import Module
from ...ir.op import Op
from ...ir.traverse import post_order
from ...operators.table import BY_NAME
from ...text.printer import to_text
from ...translate.source.scope import MISSING
from ...translate.types import number_places
from ..entries.call_signature import Argument, Interface, plain
from ..entries.open_program import OpenProgram
from .saved_data import described

VERSION: Final = 1
"""The version of the file; it grows when an older pyrelay could no longer read what is written."""

_METADATA: Final = "pyrelay"
_PROGRAM: Final = ".program"
_LENGTH: Final = 8  # safetensors starts with the length of its header, in eight bytes


@final
@dataclass(frozen=True)
class Saved:
    """The contents of a file, unchanged since it was written, but not validated yet."""

    manifest: Mapping[str, Any]
    program: str
    tensors: Mapping[str, torch.Tensor]


def pack(interface: Interface, program: OpenProgram, weights: Mapping[str, torch.Tensor]) -> bytes:
    """Return the bytes of a file. Raises RunError for what a file cannot contain."""
    from safetensors.torch import save  # only saving and loading pay for it

    module = program.module
    text = torch.frombuffer(bytearray(to_text(module), "utf-8"), dtype=torch.uint8)
    tensors = {n: t.detach().cpu().contiguous() for n, t in weights.items()} | {_PROGRAM: text}
    manifest = {
        "version": VERSION,
        "entry": program.entry,
        "name": interface.name,
        "arguments": [_argument(interface.name, a) for a in interface.arguments],
        "result": number_places.described(interface.result),
        "hyper": dict(interface.hyper),
        "params": list(interface.params),
        "state": list(interface.state),
        "operators": _own_operators(interface.name, module),
        "data": described(program.data, module),
    }
    manifest["checksum"] = _checksum(manifest, tensors)
    return save(tensors, {_METADATA: json.dumps(manifest)})


def unpack(data: bytes, path: str) -> Saved:
    """Return the contents of the bytes of a file. Raises CheckError for one that is cut, changed,
    of another version or no saved model; `path` is its name in the message."""
    import safetensors  # as above
    from safetensors.torch import load

    why: str | None = None
    tensors: dict[str, torch.Tensor] = {}
    try:
        tensors = load(data)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        why = str(error)
    if why is not None:
        _refuse_container(data, path, why)
    manifest = _manifest(data, path)
    try:
        checksum = manifest.pop("checksum")
        program = tensors[_PROGRAM]
        is_whole = checksum == _checksum(manifest, tensors)
        text = program.numpy().tobytes().decode("utf-8")
    except UnicodeDecodeError:
        raise CheckError(DamagedModel(path, "its program is no text")) from None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckError(DamagedModel(path, f"a part is missing ({error})")) from None
    if not is_whole:
        raise CheckError(DamagedModel(path, "its contents are not what was written (checksum)"))
    del tensors[_PROGRAM]
    return Saved(manifest, text, tensors)


def write(path: Path, data: bytes) -> None:
    """Write a file as a whole: beside its place first, then under its name. Raises OSError."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", str(path.parent))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _refuse_container(data: bytes, path: str, why: str) -> NoReturn:
    """Refuse bytes that safetensors does not read: a part of such a file, or something else."""
    if data[_LENGTH : _LENGTH + 1] != b"{":
        raise CheckError(NotASavedModel(path, "it is no safetensors file"))
    if _promised_length(data) > len(data):
        raise CheckError(DamagedModel(path, f"it ends early, after {len(data):,} bytes"))
    raise CheckError(DamagedModel(path, f"safetensors cannot read it ({why})"))


def _promised_length(data: bytes) -> int:
    """Return how long the header of a file says that it is; as long as it is if it says nothing."""
    length = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    if length > len(data):
        return length
    try:
        header = json.loads(data[_LENGTH:length])
        parts = [v["data_offsets"][1] for n, v in header.items() if n != "__metadata__"]
        return length + max(parts)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        return len(data)


def _manifest(data: bytes, path: str) -> dict[str, Any]:
    """Return the manifest in the header of a file whose header safetensors has read."""
    length = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    header = json.loads(data[_LENGTH:length])
    text = header.get("__metadata__", {}).get(_METADATA)
    if text is None:
        raise CheckError(NotASavedModel(path, "it holds tensors, and no program"))
    try:
        manifest = json.loads(text)
    except (RecursionError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise CheckError(DamagedModel(path, "its manifest cannot be read"))
    version = manifest.get("version")
    if type(version) is not int or version != VERSION:
        raise CheckError(UnknownModelVersion(path, str(version), VERSION))
    return manifest


def _checksum(manifest: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.reshape(-1)
        if flat.numel():
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _argument(model: str, argument: Argument) -> dict[str, Any]:
    found: dict[str, Any] = {"name": argument.name}
    if argument.default is not MISSING:
        default = plain(argument.default)
        if default is MISSING:
            kind = type(argument.default).__name__
            raise RunError(NotSaveable(model, f"the default of `{argument.name}` is a {kind}"))
        found["default"] = default
    if argument.keyword_only:
        found["keyword_only"] = True
    return found


def _own_operators(model: str, module: Module) -> list[str]:
    """Return the names of the operators that a program calls and pyrelay does not bring. Raises
    RunError where two have the same name, which a text cannot distinguish."""
    found: dict[str, Op] = {}
    for function in module.functions.values():
        for node in post_order(function):
            if not isinstance(node, Call) or not isinstance(node.callee, Op):
                continue
            op = node.callee
            if found.setdefault(op.name, op) is not op:
                why = f"it calls two operators that are named `{op.name}`"
                raise RunError(NotSaveable(model, why, "give each a name of its own", node.span))
    return sorted(n for n, op in found.items() if BY_NAME.get(n) is not op)
