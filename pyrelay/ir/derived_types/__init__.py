"""Types of the functions that transforms make, by those of the functions that they take."""
