"""What the commands say of files that are none, or not what they take."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from pyrelay.cli import main

RIGHT = """
    from pyrelay import Float, relay

    @relay
    def double(x: Float) -> Float:
        return x + x
"""
WRONG = """
    from pyrelay import Float, relay

    @relay
    def wave(x: Float) -> Float:
        return relay.tanhh(x)
"""
TEXT = "def @main(%x: int64) -> int64 { %x + 1 }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "right_one.py").write_text(dedent(RIGHT))
    (tmp_path / "main.relay").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad_syntax.py", "def f(:\n", "SyntaxError: invalid syntax"),
        ("exits.py", "raise SystemExit(3)\n", "SystemExit: 3"),
        ("imports.py", "import nothing_like_this\n", "No module named 'nothing_like_this'"),
        ("bad_bytes.py", "x = \udcff\n", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_shown_from_its_own_line_on(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    (folder / name).write_bytes(text.encode(errors="surrogateescape"))
    assert main(["check", name]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.endswith(f"{name} could not be imported\n")
    assert "pyrelay/cli" not in shown
    assert "importlib" not in shown


def test_what_is_no_python_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "notes.txt").write_text("notes")
    (folder / "loop.py").symlink_to("loop.py")
    assert main(["check", "notes.txt"]) == 2
    assert capsys.readouterr().err.endswith("notes.txt is not a Python file\n")
    assert main(["check", "loop.py"]) == 2
    assert capsys.readouterr().err.startswith("loop.py cannot be read")
    assert main(["run", "right_one.py"]) == 2
    assert capsys.readouterr().err.startswith("right_one.py is Python; this command takes a text")


def test_a_file_without_functions_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "nothing_here.py").write_text("x = 1\n")
    (folder / "empty.relay").write_text("")
    (folder / "types.relay").write_text("type T { A }")
    for name in ("nothing_here.py", "empty.relay", "types.relay"):
        assert main(["check", name]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{name}: 0 functions checked, 0 errors, 0 warnings\n")
        assert "no name of the file is a function" in shown


def test_a_folder_is_checked_as_a_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = folder / "inside"
    inside.mkdir()
    (inside / "wrong_one.py").write_text(dedent(WRONG))
    (inside / "other.py").write_text("raise SystemExit(1)\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "broken.py").write_text("import pyrelay, nothing\n")
    (folder / "README.md").write_text("pyrelay")
    assert main(["check", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "main.relay: 1 function checked, 0 errors, 0 warnings" in lines
    assert "right_one.py: 1 function checked, 0 errors, 0 warnings" in lines
    assert lines[-1] == "right_one.py: 1 function checked, 0 errors, 0 warnings"
    assert any("wrong_one.py: 1 function checked, 1 error" in line for line in lines)
    assert not any("other.py" in line for line in lines)
    (inside / "broken.py").write_text("import pyrelay, nothing_like_this\n")
    assert main(["check", "."]) == 2
    captured = capsys.readouterr()
    assert "broken.py could not be imported" in captured.err
    assert "right_one.py: 1 function checked" in captured.out


def test_a_folder_without_programs_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    assert main(["check", "empty"]) == 2
    assert capsys.readouterr().err == "no file in empty uses pyrelay\n"
    assert main(["show", "empty:f"]) == 2
    assert capsys.readouterr().err == "empty is a folder; name a file in it\n"


def test_a_target_without_a_name_gets_the_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target in ("right_one.py", "right_one.py:"):
        assert main(["show", target]) == 2
        assert capsys.readouterr().err == "say which function: right_one.py:double\n"
    assert main(["show", ":"]) == 2
    assert capsys.readouterr().err == "say which function: FILE:NAME\n"


def test_an_argument_for_no_parameter_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "main.relay", "--arg", "y=2"]) == 2
    assert capsys.readouterr().err == "there is no parameter y; the parameters are x\n"


def test_a_model_that_needs_static_arguments_is_checked_where_it_gets_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
        from pyrelay import Dim, Float, Tensor, relay, relay_model

        N = Dim("N")

        @relay_model
        def layer(x: Tensor[Float, (N, 4)], *, size: int) -> Tensor[Float, (N, 4)]:
            if size > 1:
                return layer(x, size=size)
            return relay.linear(x, out_features=4)
    """
    (folder / "sized.py").write_text(dedent(text))
    assert main(["check", "sized.py"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "sized.py: 0 functions checked, 0 errors, 0 warnings"
    assert second == "checked where they get their static arguments: layer"
