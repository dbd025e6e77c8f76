"""Relay's operators, and what each is in ours."""
