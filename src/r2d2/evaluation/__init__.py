"""Gold and predictions lined up and scored, and what needs a model to be measured."""
