"""Which Python is the language, its meaning as operators, and hints for the rest."""
