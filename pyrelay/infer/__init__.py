"""Type and shape inference: from a translated module to a typed one."""

from .explanations.cases import unreachable_cases as unreachable_cases
from .infer import find_mistakes as find_mistakes
from .infer import infer as infer
