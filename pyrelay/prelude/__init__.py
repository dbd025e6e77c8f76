"""The functions and data types that every program can name."""
