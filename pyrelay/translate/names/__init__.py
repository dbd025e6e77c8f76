"""Local names at each place of a function: static values, narrowing and aliases."""
