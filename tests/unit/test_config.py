"""Options come from one table, the environment and `with` blocks."""

from __future__ import annotations

import contextvars
import dataclasses
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyrelay.config import (
    Changes,
    Options,
    UnknownOption,
    current,
    from_environment,
    options,
    warn_of_unknown,
)


def test_without_variables_the_defaults_hold() -> None:
    assert from_environment({"HOME": "/home/me", "PATH": ""}) == Options()
    assert not Options().verify


def test_variables_set_options_in_their_own_types() -> None:
    found = from_environment(
        {
            "PYRELAY_VERIFY": "1",
            "PYRELAY_DUMP_DIR": "out",
            "PYRELAY_DEVICE": "cuda",
            "PYRELAY_LOGS": "+passes",
        }
    )
    assert found.verify
    assert (found.dump_dir, found.device, found.logs) == (Path("out").absolute(), "cuda", "+passes")


def test_a_value_that_cannot_be_read_names_its_variable() -> None:
    with pytest.raises(ValueError, match="PYRELAY_VERIFY is 1 or 0, not 'maybe'"):
        from_environment({"PYRELAY_VERIFY": "maybe"})
    with pytest.raises(ValueError, match="PYRELAY_DUMP_DIR is empty"):
        from_environment({"PYRELAY_DUMP_DIR": ""})


def test_an_unknown_variable_is_warned_about_with_the_near_miss() -> None:
    for misspelt in ("PYRELAY_VERFIY", "PYRELEY_VERIFY", "PYRELAY_verify", "RELAY_VERIFY"):
        with pytest.warns(UnknownOption, match=f"{misspelt} .* did you mean PYRELAY_VERIFY"):
            warn_of_unknown({misspelt: "1"})
    with pytest.warns(UnknownOption, match="known are PYRELAY_VERIFY, "):
        warn_of_unknown({"PYRELAY_QQ": "1"})
    warn_of_unknown({"PYRELAY_VERIFY": "1", "RELEASE": "1", "RELAY_HOST": "1", "VERIFY": "1"})


def test_the_warning_comes_once_at_the_line_that_imports_pyrelay(tmp_path: Path) -> None:
    program = "import pyrelay\n\nwith pyrelay.options(verify=True):\n    pass\n"
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYRELAY_LOWERNG": "evaluator"},
    )
    told = "UnknownOption: PYRELAY_LOWERNG is no option; did you mean PYRELAY_LOWERING?"
    assert done.stderr.count(told) == 1
    assert "program.py:1: " in done.stderr


def test_a_block_overrides_and_restores_also_after_an_exception() -> None:
    before = current()
    with options(verify=not before.verify) as inside:
        assert current() is inside
        assert current().verify is not before.verify
        with options(device="meta"):
            assert current() == dataclasses.replace(inside, device="meta")
        assert current() is inside
    assert current() == before
    with pytest.raises(RuntimeError), options(verify=not before.verify):
        raise RuntimeError
    assert current() == before


def test_an_override_stays_in_its_context() -> None:
    with options(device="meta"):
        assert contextvars.Context().run(current).device != "meta"


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="verfiy"), options(verfiy=True):  # type: ignore[call-arg]
        pass


def test_every_option_can_be_overridden_and_has_a_sentence() -> None:
    names = [f.name for f in dataclasses.fields(Options)]
    assert list(Changes.__annotations__) == names
    assert all(f.metadata["doc"] for f in dataclasses.fields(Options))


def test_logs_set_the_levels_of_our_loggers_for_the_block() -> None:
    def levels() -> list[int]:
        return [logging.getLogger(f"pyrelay.{n}").level for n in ("passes", "cache", "runtime")]

    with options(logs="+passes,-cache,runtime"):
        assert levels() == [logging.DEBUG, logging.ERROR, logging.INFO]
    assert levels() == [logging.NOTSET] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_depth": 0}, "max_depth is a positive number, not '0'"),
        ({"max_depth": True}, "max_depth is a positive number, not True"),
        ({"verify": 1}, "verify is True or False, not 1"),
        ({"cache_dir": 3}, "cache_dir is a directory, not 3"),
        ({"lowering": None}, "lowering is a text, not None"),
        ({"lowering": "cuda"}, "lowering is one of auto, "),
        ({"lower": "c"}, "there is no option lower; did you mean lowering?"),
    ],
    ids=str,
)
def test_a_block_refuses_a_value_that_an_option_cannot_have(changes: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)), options(**changes):
        raise AssertionError


def test_a_block_reads_texts_as_the_variables_are_read(tmp_path: Path) -> None:
    changes: Any = {"cache_dir": str(tmp_path), "verify": "off", "max_depth": "7"}
    with options(**changes) as found:
        assert (found.cache_dir, found.verify, found.max_depth) == (tmp_path, False, 7)
