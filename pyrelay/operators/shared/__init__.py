"""Type rules and bodies that several operators share."""
