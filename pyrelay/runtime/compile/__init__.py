"""From translated programs to what runs them."""
