"""Host code: a program in its last stage as Python functions that call torch.

`plan` decides what each function becomes, `liveness` where values die, `body` and its neighbours
write the syntax, `compiled` runs it.
"""

from __future__ import annotations

from .compiled import UNWATCHED as UNWATCHED
from .compiled import CompiledProgram as CompiledProgram
from .compiled import Instead as Instead
from .compiled import compile_module as compile_module
