"""pyrelay: annotated Python, compiled through Relay's functional typed IR."""

from typing import Any  # in annotations, one size that nothing is known of

from .garbage import uncollected

with uncollected():
    from . import dispatch
    from .annotations import (
        NHWC,
        Batch,
        Bool,
        Dim,
        Float,
        Fn,
        Int,
        Model,
        Optimizer,
        Params,
        Ref,
        Tensor,
        bfloat16,
        bool_,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from .config import no_compile, options
    from .decorators import relay, relay_model
    from .diagnostics.diagnostic import CheckError, RelayError, RelayWarning, RunError
    from .diagnostics.uncaught import hide_own_frames
    from .version import __version__

# Without it `from pyrelay import *` would bring submodules, such as `dataclass`, in the place of
# the user's names.
__all__ = [
    "NHWC",
    "Any",
    "Batch",
    "Bool",
    "CheckError",
    "Dim",
    "Float",
    "Fn",
    "Int",
    "Model",
    "Optimizer",
    "Params",
    "Ref",
    "RelayError",
    "RelayWarning",
    "RunError",
    "Tensor",
    "__version__",
    "bfloat16",
    "bool_",
    "dispatch",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "no_compile",
    "options",
    "relay",
    "relay_model",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

hide_own_frames()
del hide_own_frames, uncollected
