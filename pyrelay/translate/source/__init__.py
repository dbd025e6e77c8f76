"""Python source as a script has it: definitions, captured names, unions and optimisers."""
