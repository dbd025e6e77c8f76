"""Which Python is the language, and what to write instead of the rest."""
