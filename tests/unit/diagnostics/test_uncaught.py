"""What a script prints when a mistake ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WRONG = """\
import sys

sys.excepthook = lambda kind, error, at: print("theirs", kind.__name__)

from pyrelay import Float, relay


@relay
def f(x: Float) -> Float:
    return relay.tanhh(x)


def main():
    f(1.0)


main()
"""

CAUGHT = """\
from pyrelay import RelayError, relay

try:
    relay.parse("def @main( { 1 }")
except RelayError as error:
    raise RelayError(*error.diagnostics) from error
"""


def ended(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "script.py"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_only_the_users_frames_stand_before_the_mistake(tmp_path: Path) -> None:
    error = ended(WRONG, tmp_path).stderr
    frames = [line for line in error.splitlines() if line.startswith("  File ")]
    assert [frame.split(", line ")[1] for frame in frames] == ["17, in <module>", "14, in main"]
    assert "\npyrelay.CheckError: error[RL111]: `relay` has no `tanhh`\n" in error


def test_frames_of_what_caused_it_are_hidden_too(tmp_path: Path) -> None:
    error = ended(CAUGHT, tmp_path).stderr
    assert error.count("script.py") == 2
    assert error.count("  File ") == 2
    assert "direct cause" in error


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    program = 'from pyrelay import relay\n\nrelay.load_model("missing.relay")\n'
    error = ended(program, tmp_path).stderr
    assert error.count("  File ") == 1
    assert error.endswith(
        "FileNotFoundError: [Errno 2] No such file or directory: 'missing.relay'\n"
    )


def test_other_exceptions_are_shown_as_before(tmp_path: Path) -> None:
    done = ended(WRONG.replace("f(1.0)", "1 / 0"), tmp_path)
    assert done.stdout == "theirs ZeroDivisionError\n"
    assert done.returncode == 1


def test_what_the_package_says_of_a_call_is_shown_without_its_frames(tmp_path: Path) -> None:
    for call, told in (
        ('f.show("tiped")', "ValueError: there is no stage 'tiped'; there are source"),
        ("relay.optim.adam(lr=-1.0)", "ValueError: the learning rate is not negative"),
        ("relay.create_model(f, 1)", "TypeError: relay.create_model: takes 1 positional"),
        (
            "relay.linearise(f)",
            "pyrelay.MissingNameError: error[RL111]: `relay` has no `linearise`",
        ),
    ):
        program = "from pyrelay import Float, relay\n\n\n@relay\ndef f(x: Float) -> Float:\n"
        error = ended(f"{program}    return x\n\n\n{call}\n", tmp_path).stderr
        assert error.count("  File ") == 1
        assert f"\n{told}" in error
