"""The parts of the text form that the printer and the parser share, so that they cannot differ."""
