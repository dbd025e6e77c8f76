"""Models written in the public language only."""
