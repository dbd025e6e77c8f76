"""Programs in texts, and the prelude's functions."""
