"""Lists: displays, comprehensions, methods and changes."""
