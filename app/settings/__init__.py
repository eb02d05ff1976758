"""What a person decides for the whole program: models and keys, budget, looks."""
