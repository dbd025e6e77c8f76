"""The operators, one family a file; `table.py` lists them all."""
