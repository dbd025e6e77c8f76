"""What each name stands for at each place of a function."""
