"""Corpora, treebanks, pieces and batches."""
