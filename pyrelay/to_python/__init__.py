"""IR as Python in the language: the way back from translation."""
