"""What the C compiler is asked to build."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrelay.lower_c.building import Compiler


class Counted:
    """A compiler that counts what it builds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        real = Compiler.compile

        def counted(found: Compiler, text: str, flags: tuple[str, ...], folder: Path) -> bytes:
            self.texts.append(text)
            return real(found, text, flags, folder)

        monkeypatch.setattr(Compiler, "compile", counted)
