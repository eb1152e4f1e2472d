"""The other systems of the paper: language models behind `LanguageModel`, and models whose `predict` gives trees."""
