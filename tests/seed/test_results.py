"""`Result` of the essay on data types in Python: `isinstance` tests are patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union, assert_never

import pytest

from pyrelay import CheckError, relay

from .values import agree


@dataclass(frozen=True)
class OK:
    result: int


@dataclass(frozen=True)
class Failure:
    msg: str


Result = Union[OK, Failure]  # noqa: UP007  as the essay writes it


@relay
def show_result(r: Result) -> str:
    if isinstance(r, OK):
        return str(r.result)
    elif isinstance(r, Failure):  # noqa: RET505  as the essay writes it
        return "Failure: " + r.msg
    else:
        assert_never(r)


@relay
def show_by_match(r: Result) -> str:
    match r:
        case OK(result):
            return str(result)
        case Failure(msg):
            return "Failure: " + msg


@relay
def show_by_match_and_never(r: Result) -> str:
    match r:
        case OK(result=n):
            return f"{n}"
        case Failure(msg=text):
            return f"Failure: {text}"
        case _:
            assert_never(r)


@pytest.mark.parametrize("show", [show_result, show_by_match, show_by_match_and_never])
def test_a_result_is_shown(show: Any) -> None:
    assert agree(show, OK(2)) == "2"
    assert agree(show, Failure("something wrong")) == "Failure: something wrong"


@relay
def half_shown(r: Result) -> str:
    if isinstance(r, OK):
        return str(r.result)
    else:  # noqa: RET505
        assert_never(r)


def test_a_case_that_is_left_out_is_named() -> None:
    with pytest.raises(CheckError, match="Failure"):
        half_shown.check()
