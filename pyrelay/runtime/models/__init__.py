"""Models as torch modules, their updates and optimisers."""
