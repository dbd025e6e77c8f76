"""What was measured is found again, and nothing else is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from pyrelay.autotuning.measurements import keep, key_of, recall
from pyrelay.config import options


def files(folder: Path) -> list[Path]:
    """Return the files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_winner_is_found_again(tmp_path: Path) -> None:
    with options(cache_dir=tmp_path):
        key = key_of("conv2d", [[1, 2], None])
        assert recall(key) is None
        keep(key, "unfold")
        assert recall(key) == "unfold"
        keep(key, "plain")
        assert recall(key) == "plain"
    assert len(files(tmp_path)) == 1


def test_another_machine_torch_or_number_of_threads_is_another_key() -> None:
    key = key_of("conv2d")
    threads = torch.get_num_threads()
    assert json.loads(key)[1][0] == torch.__version__
    assert json.loads(key)[2] == threads
    torch.set_num_threads(threads + 1)
    try:
        assert key_of("conv2d") != key
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "\xff", '{"winner": "unfold"}', '{"key": "another", "winner": "unfold"}'],
)
def test_a_file_that_is_cut_or_foreign_is_not_believed_but_written_anew(
    tmp_path: Path, text: str
) -> None:
    with options(cache_dir=tmp_path):
        key = key_of("conv2d")
        keep(key, "unfold")
        (file,) = files(tmp_path)
        file.write_text(text, encoding="latin-1")
        assert recall(key) is None
        keep(key, "plain")
        assert recall(key) == "plain"


def test_a_winner_that_is_no_text_is_not_believed(tmp_path: Path) -> None:
    with options(cache_dir=tmp_path):
        key = key_of("conv2d")
        keep(key, "unfold")
        (file,) = files(tmp_path)
        file.write_text(json.dumps({"key": key, "winner": 1}))
        assert recall(key) is None


def test_every_cut_of_a_file_is_noticed(tmp_path: Path) -> None:
    with options(cache_dir=tmp_path):
        key = key_of("conv2d")
        keep(key, "unfold")
        (file,) = files(tmp_path)
        whole = file.read_text()
        for length in range(len(whole.rstrip()) - 1):
            file.write_text(whole[:length])
            assert recall(key) is None


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with options(cache_dir=tmp_path / "file"):
        keep(key_of("conv2d"), "unfold")
        assert recall(key_of("conv2d")) is None


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    with options(cache_dir=tmp_path):
        for number in range(20):
            keep(key_of(number), "unfold")
        assert len(files(tmp_path)) == 20
        assert {recall(key_of(number)) for number in range(20)} == {"unfold"}
