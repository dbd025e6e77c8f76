"""Programs that scripts hold as text, and the prelude's functions."""
