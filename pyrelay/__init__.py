"""pyrelay compiles annotated Python functions through a typed functional IR into torch programs."""
