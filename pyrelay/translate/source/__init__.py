"""The text, the signature and the guards of a decorated function."""
