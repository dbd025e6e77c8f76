"""The border between scripts and compiled code: values with their types, in and out."""
