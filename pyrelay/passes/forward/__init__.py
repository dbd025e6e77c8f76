"""Forward-mode differentiation: the functions that `jvp` stands for."""

from .expanded import ForwardMode as ForwardMode
