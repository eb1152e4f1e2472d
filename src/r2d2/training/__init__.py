"""From a recipe to a model: the Trainer, its recipes, checkpoints and runs."""
