"""CKY over DIORA's chart: of each sentence the tree whose splits score highest together.

Legend: b sentences, n words. `split_scores` holds, for each width from 2, the score of every split of every span; the
score of a tree is the sum over its splits. Spans are ordered as in `diora_joins`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from r2d2.baselines.diora_joins import inside_joins
from r2d2.chart.protected import ProtectedSpans
from r2d2.trees import Node, Span, Tree


def decode(
    split_scores: Sequence[Float[Tensor, "splits spans b"]],
    lengths: Sequence[int],
    words: Sequence[Sequence[Span]] | None = None,
) -> list[Tree]:
    """The best trees, over the positions of each sentence; none has a span that crosses one of `words`.

    Of equal splits the leftmost is taken.
    """
    n = len(split_scores) + 1
    device = split_scores[0].device if split_scores else torch.device("cpu")
    protected = None if words is None else ProtectedSpans(words, lengths, device)
    best = torch.zeros(n, len(lengths), device=device)
    chosen: list[list[list[int]]] = []  # by width from 2, start and sentence: how many words the left part takes
    for width, scores in enumerate(split_scores, start=2):
        below = torch.stack([best[join.x] + best[join.y] for join in inside_joins(n, width)])
        row, split = (scores + below).max(dim=0)  # [spans, b]
        if protected is not None:
            row = row.masked_fill(_crossing(protected, row, width), -torch.inf)
        best = torch.cat([best, row])
        chosen.append((split + 1).tolist())
    return [_tree(chosen, sentence, length) for sentence, length in enumerate(lengths)]


def _crossing(protected: ProtectedSpans, row: Float[Tensor, "spans b"], width: int) -> Bool[Tensor, "spans b"]:
    start = torch.arange(row.shape[0], device=row.device).unsqueeze(1).expand_as(row)
    sentence = torch.arange(row.shape[1], device=row.device).expand_as(row)
    return protected.crosses(sentence, start, start + width)


def _tree(chosen: Sequence[Sequence[Sequence[int]]], sentence: int, length: int) -> Tree:
    nodes: list[Node] = []
    waiting: list[Span] = [(0, length)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            nodes.append(Node("", start, end))
            split = start + chosen[end - start - 2][start][sentence]
            waiting += [(split, end), (start, split)]  # the left part is taken up first: pre-order
    return Tree(tuple(range(length)), tuple(nodes))
