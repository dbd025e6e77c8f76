"""Files that are no saved models, or no longer: they are refused, with the reason."""

from __future__ import annotations

import contextlib
import json
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from pyrelay import CheckError, Dim, Float, RelayError, Tensor, relay, relay_model
from pyrelay.operators.table import BY_NAME
from pyrelay.runtime.interop import saving
from pyrelay.runtime.interop.export import load_bytes
from tests.unit.runtime.interop.test_saving import exported_tower, moved

pytestmark = pytest.mark.host("loads what does not run")

N = Dim("N")
SAVED = exported_tower().to_bytes()


def refused(data: bytes) -> tuple[str, str]:
    """Return the code and the reason for which bytes are refused."""
    with pytest.raises(CheckError) as caught:
        load_bytes(data, "model")
    (found,) = caught.value.diagnostics
    return found.code, found.title


def test_a_file_of_something_else_is_refused() -> None:
    assert refused(b"") == ("RL410", "`model` is no saved model: it is no safetensors file")
    assert refused(pickle.dumps([1, 2, 3]))[0] == "RL410"
    assert refused(b"def main(): pass\n" * 9)[0] == "RL410"
    assert refused(save({"w": torch.ones(2)}))[1].endswith("it holds tensors, and no program")
    assert refused(save({"w": torch.ones(2)}, {"format": "pt"}))[0] == "RL410"


@pytest.mark.parametrize("part", [0.01, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused(part: float) -> None:
    code, why = refused(SAVED[: int(len(SAVED) * part)])
    assert code == "RL411"
    assert "ends early" in why
    assert refused(SAVED + b"\0")[0] == "RL411"


def test_a_changed_byte_is_refused_wherever_it_is() -> None:
    for place in range(8, len(SAVED), 41):
        data = bytearray(SAVED)
        data[place] ^= 1
        assert refused(bytes(data))[0] in ("RL410", "RL411", "RL412")


WITH_DATA = relay.export_model(relay.create_model(moved)).to_bytes()


def repacked(original: bytes = SAVED, **changes: Any) -> bytes:
    """Return the saved model with parts of it changed, and a checksum that holds."""
    saved = saving.unpack(original, "model")
    program = changes.pop("program", saved.program)
    tensors = {**saved.tensors, **changes.pop("tensors", {})}
    tensors = {n: t for n, t in tensors.items() if t is not None}
    tensors[".program"] = torch.frombuffer(bytearray(program, "utf-8"), dtype=torch.uint8)
    manifest = {**saved.manifest, **changes}
    manifest = {n: v for n, v in manifest.items() if v is not None or n == "result"}
    manifest["checksum"] = saving._checksum(manifest, tensors)
    return save(tensors, {"pyrelay": json.dumps(manifest)})


def test_what_is_repacked_unchanged_loads() -> None:
    assert repacked() == SAVED


@pytest.mark.parametrize(
    ("changes", "code", "why"),
    [
        ({"version": 2}, "RL412", "is of version 2, and this pyrelay reads version 1"),
        ({"version": "x"}, "RL412", "is of version x"),
        ({"program": '#[pyrelay = "7"]\n'}, "RL411", "its program cannot be read"),
        ({"program": "import os"}, "RL411", "its program cannot be read"),
        ({"entry": "nothing"}, "RL411", "no function `nothing`"),
        ({"entry": "block"}, "RL411", "other arguments than its manifest says"),
        ({"arguments": []}, "RL411", "other arguments"),
        ({"arguments": [{"name": "a b"}] * 3}, "RL411", "manifest is not of this version"),
        ({"params": None}, "RL411", "manifest is not of this version"),
        ({"data": {"Nothing": []}}, "RL411", "does not describe its data types"),
        ({"data": []}, "RL411", "does not describe its data types"),
        ({"result": "eval"}, "RL411", "manifest is not of this version"),
        ({"state": []}, "RL411", "fewer weights than its program takes"),
        ({"params": ["linear_1.bias"] * 99}, "RL411", "does not fit its program"),
        ({"operators": ["foo"]}, "RL413", "operators that pyrelay does not bring: foo"),
        ({"tensors": {"linear_1.bias": torch.ones(7)}}, "RL411", "does not fit its program"),
        ({"tensors": {"linear_1.bias": torch.ones(6).double()}}, "RL411", "does not fit"),
        ({"tensors": {"linear_1.bias": None}}, "RL411", "does not hold `linear_1.bias`"),
        ({"tensors": {"more": torch.ones(1)}}, "RL411", "tensors that the model has not"),
    ],
)
def test_a_changed_part_is_refused_by_name(changes: dict[str, Any], code: str, why: str) -> None:
    found = refused(repacked(**changes))
    assert found[0] == code
    assert why in found[1]


@relay_model
def windowed(x: Tensor[Float, (N,)]) -> Tensor[Float, (Any,)]:
    return x[: len(x) // 2] * relay.param((), name="scale")


def test_a_program_that_needs_a_size_which_nothing_shows_is_refused() -> None:
    saved = relay.export_model(relay.create_model(windowed)).to_bytes()
    program = saving.unpack(saved, "model").program
    assert "None, N // 2" in program
    code, why = refused(repacked(saved, program=program.replace("None, N // 2", "None, N // Q")))
    assert code == "RL411"
    assert why.endswith("nothing shows the size `Q`, which its program needs")


def test_a_program_whose_types_do_not_hold_is_refused() -> None:
    program = saving.unpack(SAVED, "model").program
    changed = program.replace("tanh(", "sum(", 1)
    assert changed != program
    code, why = refused(repacked(program=changed))
    assert code == "RL411"
    assert "program" in why


SMALL = """#[pyrelay = "1", typed]
def @f[N: Dim](%params: (), %state: (), %x: Tensor[(N,), float32]) -> Tensor[(N,), float32] {
  {}
}
"""
FAR = 10**10
HUGE: dict[str, str | None] = {
    "RL506": f"add(%x, sum(({{ zeros(size=({FAR}, {FAR}), dtype=float32) }})))",
    "RL512": f"add(%x, sum(({{ zeros(size=({FAR**2},), dtype=float32) }})))",
    "its program cannot be read": f"add(%x, sum(tensor[({FAR},), float32][1.0]))",
    "its program is not well-formed": f"add(%x, zeros(size=({FAR},), dtype=float32))",
    "a size with a divisor": "add(%x, sum(zeros(size=(1 // (N - N),), dtype=float32)))",
}


@pytest.mark.parametrize("why", HUGE)
def test_a_program_of_huge_sizes_is_refused_or_stops_and_takes_no_memory(why: str) -> None:
    program = SMALL.replace("{}", HUGE[why] or "")
    manifest: dict[str, Any] = {
        "entry": "f",
        "name": "f",
        "arguments": [{"name": "x"}],
        "params": [],
        "state": [],
    }
    gone: dict[str, Any] = dict.fromkeys(saving.unpack(SAVED, "model").tensors)
    with pytest.raises(RelayError, match=why):
        load_bytes(repacked(program=program, tensors=gone, **manifest), "model")(torch.ones(2))


# A fuzzer: only errors of ours come out.


def load_or_refuse(data: bytes) -> None:
    with contextlib.suppress(RelayError):
        load_bytes(data, "model")


@settings(max_examples=300)
@given(st.data())
def test_bytes_changed_at_random_never_crash(data: st.DataObject) -> None:
    changed = bytearray(SAVED)
    end = len(SAVED) if data.draw(st.booleans()) else 3000  # the header is where it is interesting
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, end - 1))
        stop = start + data.draw(st.integers(0, 20))
        changed[start:stop] = data.draw(st.binary(max_size=20))
    load_or_refuse(bytes(changed))


@settings(max_examples=300)
@given(st.data())
def test_a_program_changed_at_random_never_crashes(data: st.DataObject) -> None:
    program = saving.unpack(SAVED, "model").program
    words = [
        *BY_NAME,
        *program.split(),
        "(",
        ")",
        ",",
        "%x",
        "@block",
        "0",
        "-1",
        "1e400",
        '"',
        "`",
    ]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(program)))
        stop = start + data.draw(st.integers(0, 12))
        word = data.draw(st.sampled_from(words) | st.text(max_size=4))
        program = program[:start] + word + program[stop:]
    load_or_refuse(repacked(program=program.encode("utf-8", "replace").decode()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=200)
@given(JSON, st.sampled_from(["module", "name", "numbers", "defaults", "keyword_only"]))
def test_a_class_described_at_random_never_crashes(value: Any, key: str) -> None:
    manifest = saving.unpack(WITH_DATA, "model").manifest
    ((adt, (described,)),) = manifest["data"].items()
    load_or_refuse(repacked(WITH_DATA, data={adt: [{**described, key: value}]}))


@settings(max_examples=300)
@given(st.sampled_from(sorted(saving.unpack(SAVED, "model").manifest)), JSON)
def test_a_manifest_changed_at_random_never_crashes(key: str, value: Any) -> None:
    load_or_refuse(repacked(**{key: value}))
