"""The commands check, show and doctor, as a user runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple, Protocol

import pytest

from pyrelay.cli import main
from pyrelay.config import options
from pyrelay.disk_cache import DiskCache
from pyrelay.lower_c.building import can_build
from pyrelay.version import __version__

RIGHT = """
    from pyrelay import Dim, Float, Tensor, relay

    N = Dim("N")

    @relay
    def double(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return x + x

    if __name__ == "__main__":
        raise SystemExit("scripts do not run when they are checked")
"""

WRONG = """
    from pyrelay import Dim, Float, Tensor, relay

    N = Dim("N")

    @relay
    def product(x: Tensor[Float, (N, 3)], y: Tensor[Float, (4, 5)]):
        return x @ y

    @relay
    def twice(x: Tensor[Float, (N, 3)], y: Tensor[Float, (4, 5)]):
        return product(x, y) + product(x, y)

    @relay
    def other(x: Float) -> Float:
        return relay.tanhh(x)
"""

REFUSED = """
    from pyrelay import Float, relay

    @relay
    def first(x: Float) -> Float:
        table = {1: x}
        return x

    @relay
    def second(x: Float) -> Float:
        return relay.tanhh(x)

    @relay
    def third(x: Float) -> Float:
        with open("a"):
            return x
"""

WARNED = """
    from pyrelay import relay

    @relay
    def sign(n: int) -> int:
        match n:
            case 0: return 0
            case 0: return 1
            case _: return 2

    @relay
    def twice(n: int) -> int:
        return sign(n) * 2
"""


class Done(NamedTuple):
    """What a command printed, and its exit status."""

    returncode: int
    stdout: str
    stderr: str


class Run(Protocol):
    """Runs a command in a folder."""

    def __call__(self, *arguments: str, cwd: Path) -> Done: ...


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `python -m pyrelay` in a folder; files are imported anew each time."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*arguments: str, cwd: Path) -> Done:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        before = {*sys.modules}
        status = main(arguments)
        for name in {*sys.modules} - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(cwd)):
                del sys.modules[name]
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "right.py").write_text(dedent(RIGHT))
    (tmp_path / "wrong.py").write_text(dedent(WRONG))
    (tmp_path / "warned.py").write_text(dedent(WARNED))
    return tmp_path


def test_a_right_file_passes(folder: Path) -> None:
    command = [sys.executable, "-m", "pyrelay", "check", "right.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.stdout == "right.py: 1 function checked, 0 errors, 0 warnings\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_mistakes_of_all_functions_are_shown_once_with_their_places(folder: Path, run: Run) -> None:
    done = run("check", "wrong.py", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.count("error[RL") == 2
    assert "--> wrong.py:8:" in done.stdout
    assert "tanh" in done.stdout
    assert done.stdout.endswith("wrong.py: 3 functions checked, 2 errors, 0 warnings\n")
    assert "\x1b[" not in done.stdout


def test_what_decorators_refuse_does_not_hide_other_mistakes(folder: Path, run: Run) -> None:
    (folder / "refused.py").write_text(dedent(REFUSED), encoding="utf-8")
    done = run("check", "refused.py", cwd=folder)
    assert done.returncode == 1
    for mistake in ("refused.py:6:13", "refused.py:11:12", "refused.py:15:5"):
        assert done.stdout.count(mistake) == 1
    assert "1 function checked, 3 errors" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_warnings_are_shown_once_beside_the_report(folder: Path, run: Run) -> None:
    done = run("check", "warned.py", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.count("warning[RL233]: this case is never reached") == 1
    assert "--> warned.py:8:" in done.stderr
    assert done.stdout == "warned.py: 2 functions checked, 0 errors, 1 warning\n"
    data = json.loads(run("check", "warned.py", "--json", cwd=folder).stdout)
    assert (data["errors"], data["warnings"]) == (0, 1)
    assert data["diagnostics"][0]["severity"] == "warning"


def test_json_holds_the_same_mistakes(folder: Path, run: Run) -> None:
    done = run("check", "wrong.py", "--json", cwd=folder)
    data = json.loads(done.stdout)
    assert (data["checked"], data["errors"], data["warnings"]) == (3, 2, 0)
    first = data["diagnostics"][0]
    assert first["code"].startswith("RL2")
    assert (first["primary"]["file"], first["primary"]["line"]) == ("wrong.py", 8)
    assert done.returncode == 1


def test_what_a_script_prints_is_no_part_of_the_json(folder: Path, run: Run) -> None:
    (folder / "loud.py").write_text('print("loading")\n' + dedent(RIGHT))
    done = run("check", "loud.py", "--json", cwd=folder)
    assert json.loads(done.stdout)["checked"] == 1
    assert done.stderr == "loading\n"


def test_what_a_script_writes_past_sys_stdout_is_no_part_of_the_json(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = ("import os, subprocess, sys", 'os.write(1, b"raw")', 'sys.__stdout__.write("own")')
    loud = tmp_path / "louder.py"
    loud.write_text("\n".join((*lines, 'subprocess.run(["echo", "child"])\n')))
    assert main(["check", str(loud), "--json"]) == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["checked"] == 0
    assert "raw" in printed.err
    assert "child" in printed.err


@pytest.mark.parametrize("file", ["main.py", "__main__.py", "box/__main__.py", "two.parts.py"])
def test_no_command_runs_what_only_a_script_runs(
    file: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "box").mkdir()
    (folder / "box" / "__init__.py").touch()
    (folder / file).write_text(dedent(RIGHT))
    target = str(folder / file)
    for arguments in (["check", target], ["show", f"{target}:double"], ["explain", target]):
        assert main(arguments) == 0
    assert "script" not in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"pyrelay {__version__}\n")


def test_the_code_of_an_error_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "rl204"]) == 0
    assert main(["explain", "RL999"]) == 2
    told = capsys.readouterr()
    assert told.out.startswith("RL204\n\nThe two ways through an `if`")
    assert told.err == "no error has the code RL999\n"


def test_every_code_of_the_reference_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    reference = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"
    codes = re.findall(r"^## (RL\d+)", reference.read_text("utf-8"), re.MULTILINE)
    assert len(codes) > 150
    for code in codes:
        assert main(["explain", code]) == 0
        heading, _, text = capsys.readouterr().out.partition("\n\n")
        assert heading == code
        assert text.strip()


def test_a_program_is_shown_at_a_stage(folder: Path, run: Run) -> None:
    done = run("show", "right.py:double", "--stage", "typed", cwd=folder)
    assert "double" in done.stdout
    assert done.returncode == 0
    source = run("show", "right.py:double", "--stage", "source", cwd=folder)
    assert "return x + x" in source.stdout


def test_a_wrong_name_gets_the_near_miss(folder: Path, run: Run) -> None:
    done = run("show", "right.py:doubel", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean double?" in done.stderr


def test_a_missing_file_is_named(folder: Path, run: Run) -> None:
    done = run("check", "nothing.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "there is no file nothing.py\n"


def test_an_exception_in_the_file_is_shown_from_the_users_line_on(folder: Path, run: Run) -> None:
    (folder / "broken.py").write_text("import json\n\njson.loads('{')\n")
    done = run("check", "broken.py", cwd=folder)
    assert done.returncode == 2
    assert "broken.py could not be imported" in done.stderr
    assert 'broken.py", line 3' in done.stderr
    assert "pyrelay/cli" not in done.stderr


def test_a_file_named_like_a_module_of_the_library_is_the_users_own(folder: Path, run: Run) -> None:
    (folder / "io.py").write_text((folder / "right.py").read_text())
    done = run("check", "io.py", cwd=folder)
    assert done.stdout == "io.py: 1 function checked, 0 errors, 0 warnings\n"


def test_a_file_in_a_package_keeps_its_relative_imports(folder: Path, run: Run) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "right.py").write_text((folder / "right.py").read_text())
    (package / "user.py").write_text("from .right import double\n")
    done = run("check", str(Path("package") / "user.py"), cwd=folder)
    assert "1 function checked, 0 errors" in done.stdout


def test_the_doctor_describes_versions_devices_and_options(tmp_path: Path, run: Run) -> None:
    done = run("doctor", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("versions", "devices", "compilers", "backends", "options", "torch", "dump_dir"):
        assert word in done.stdout
    runs = "c" if can_build() else "torch"
    assert f"auto             {runs} on cpu, torch on other devices\n" in done.stdout


def test_what_is_fused_is_explained(folder: Path, run: Run) -> None:
    done = run("explain", "right.py", "double", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("double: 1 call of operators in the code\ntorch runs it")
    assert "4*N B" in done.stdout
    assert "right.py:8" in done.stdout
    assert run("explain", "right.py", cwd=folder).stdout == done.stdout
    unknown = run("explain", "right.py", "doubel", cwd=folder)
    assert unknown.returncode == 2
    assert "did you mean double?" in unknown.stderr


ASSUMED = """
    from pyrelay import Dim, Float, Tensor, relay

    N, M = Dim("N"), Dim("M")

    @relay
    def total(x: Tensor[Float, (N,)], y: Tensor[Float, (M,)]) -> Tensor[Float, (M,)]:
        return x + y
"""


def test_strict_refuses_equations_that_types_do_not_tell(tmp_path: Path, run: Run) -> None:
    (tmp_path / "assumed.py").write_text(dedent(ASSUMED))
    params = "%x: Tensor[(A), float32], %y: Tensor[(B), float32]"
    text = f"def @main[A: Dim, B: Dim]({params}) {{ %x + %y }}"
    (tmp_path / "assumed.relay").write_text(f'#[pyrelay = "1"]\n{text}\n')
    for name in ("assumed.py", "assumed.relay"):
        assert run("check", name, cwd=tmp_path).returncode == 0
        refused = run("check", "--strict", name, cwd=tmp_path)
        assert refused.returncode == 1
        assert "error[RL" in refused.stdout
        assert f"--> {name}" in refused.stdout


def test_the_caches_are_shown_and_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with options(cache_dir=tmp_path, cache=True):
        DiskCache("built", limit=1000).keep("key", b"content")
        own = tmp_path / "file of the user"
        own.write_text("text")
        assert main(["cache", "info"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{tmp_path}\n")
        assert "built            1 file" in shown
        assert main(["cache", "clear"]) == 0
        assert "removed: 1 file" in capsys.readouterr().out
        assert DiskCache("built", limit=1000).find("key") is None
        assert own.exists()
        assert main(["cache", "info"]) == 0
        assert "1 file" not in capsys.readouterr().out


def test_a_cache_that_cannot_be_removed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refused)
    with options(cache_dir=tmp_path, cache=True):
        DiskCache("built", limit=1000).keep("key", b"content")
        assert main(["cache", "clear"]) == 2
    assert f"{tmp_path / 'built'} cannot be removed" in capsys.readouterr().err
