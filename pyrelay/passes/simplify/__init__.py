"""The passes that make work for each other, and the rounds in which they run."""
