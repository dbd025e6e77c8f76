"""From clashes and missing cases to problems in the user's names, types and places."""
