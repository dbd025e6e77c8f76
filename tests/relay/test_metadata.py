"""Constants that stand in the metadata behind a text of Relay's."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Constant, TensorData
from pyrelay.ir.types import float32
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.relay.reading import mistake, module


def metadata(values: list[float], shape: tuple[int, ...], *, code: int = 2) -> str:
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape), code, 32, 1)
    body = struct.pack(f"<{len(values)}f", *values)
    array = head + struct.pack(f"<{len(shape)}q", *shape) + struct.pack("<q", len(body)) + body
    return "\n#[metadata]\n" + json.dumps(
        {
            "root": 1,
            "nodes": [
                {"type_key": ""},
                {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
                {"type_key": "Array", "data": [3]},
                {"type_key": "relay.Constant", "attrs": {"data": "0", "span": "0"}},
            ],
            "b64ndarrays": [base64.b64encode(array).decode()],
            "attrs": {"tvm_version": "0.19.0"},
        }
    )


def test_constants_come_from_the_metadata() -> None:
    text = "def @main() { meta[relay.Constant][0] /* ty=Tensor[(2, 1), float32] */ }"
    body = module(text + metadata([0.1, -2.5], (2, 1))).functions["main"].body
    assert isinstance(body, Constant)
    assert isinstance(body.value, TensorData)
    assert (body.value.shape, body.value.dtype) == ((2, 1), float32)
    assert struct.unpack("<2f", body.value.data)[1] == -2.5
    assert alpha_equal(
        parse_module(to_text(module(text + metadata([0.1, 2], (2,))))),
        module(text + metadata([0.1, 2], (2,))),
    )


@pytest.mark.parametrize(
    "section",
    [
        "",
        "\n#[metadata]\n{",
        "\n#[metadata]\n[]",
        "\n#[metadata]\n{}",
        metadata([1.0], (2,)),
        metadata([1.0], (1,), code=9),
        metadata([1.0], (1,)).replace('"relay.Constant"', '"IntImm"', 1),
        metadata([1.0], (1,)).replace("P6G0", "AAAA"),
        metadata([1.0], (1,)).replace("P6G0", "-"),
    ],
)
def test_metadata_that_does_not_say_is_refused_at_its_mention(section: str) -> None:
    found = mistake("def @main() { meta[relay.Constant][0] }" + section)
    assert found == ("RL618", "meta[relay.Constant][0]")
