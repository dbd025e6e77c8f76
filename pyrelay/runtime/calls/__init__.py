"""From a call of a script to a compiled entry and back."""
