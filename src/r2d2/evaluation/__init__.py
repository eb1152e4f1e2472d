"""What needs a model to be measured: pseudo-perplexity, and parsing against a treebank."""
