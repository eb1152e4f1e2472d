"""The law: Algorithms 1 and 2 and Equations 1 to 5 as plainly as possible, one sentence and one cell at a time.

Nothing here is shared with the library. Indices follow the paper, counted from 0: T[i, j] is the cell over current
units i .. j, both included. Spans of words are half-open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

Span = tuple[int, int]
Table = dict[tuple[int, int], "Cell"]


@dataclass(eq=False)
class Cell:
    start: int
    end: int
    e: Tensor
    log_p: Tensor
    log_p_tree: Tensor
    splits: list[Split] = field(default_factory=list)

    @property
    def span(self) -> Span:
        return self.start, self.end


@dataclass(eq=False)
class Split:
    left: Cell
    right: Cell
    score: float  # log p~^k

    @property
    def at(self) -> int:
        return self.right.start


@dataclass
class Result:
    root: Cell
    cells: list[Cell]
    merges: list[Span]
    compositions: int

    def tree(self) -> object:
        """Nested lists of word positions, each cell split at its best."""
        done: dict[Cell, object] = {}
        stack = [self.root]
        while stack:
            cell = stack[-1]
            if not cell.splits:
                done[cell] = cell.start
                stack.pop()
                continue
            best = max(cell.splits, key=lambda split: split.score)  # the first of equals
            if best.left in done and best.right in done:
                done[cell] = [done[best.left], done[best.right]]
                stack.pop()
            else:
                stack += [best.left, best.right]
        return done[self.root]

    def longest_ending_at(self, boundary: int) -> Cell | None:
        return max((c for c in self.cells if c.end == boundary), key=lambda c: c.end - c.start, default=None)

    def longest_starting_at(self, boundary: int) -> Cell | None:
        return max((c for c in self.cells if c.start == boundary), key=lambda c: c.end - c.start, default=None)


def crosses(span: Span, protected: Iterable[Span]) -> bool:
    s, e = span
    return any(s < a < e < b or a < s < b < e for a, b in protected)


class TreeInduction:
    """Function TREEINDUCTION of Algorithm 1 for one sentence."""

    def __init__(
        self,
        leaves: Tensor,
        f: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        m: int,
        protected: Iterable[Span] = (),
        noise: Callable[[int, int, list[int]], Tensor] | None = None,
        temperature: float = 1.0,
        merge_score: Callable[[int, int], float] | None = None,
    ) -> None:
        self.f, self.m, self.protected = f, m, list(protected)
        self.noise, self.temperature, self.merge_score = noise, temperature, merge_score
        one = torch.zeros((), dtype=leaves.dtype)
        self.T: Table = {(i, i): Cell(i, i + 1, leaf, one, one) for i, leaf in enumerate(leaves)}
        self.n = len(leaves)
        self.cells = list(self.T.values())
        self.merges: list[Span] = []
        self.compositions = 0

    def run(self) -> Result:
        for t in range(1, self.n):
            if t >= self.m:
                self.pruning()
            length = min(t + 1, self.m)
            for i in range(self.n - length + 1):
                j = i + length - 1
                if (i, j) not in self.T:
                    self.compute(i, j)
        return Result(self.T[0, self.n - 1], self.cells, self.merges, self.compositions)

    def compute(self, i: int, j: int) -> None:
        """Equations 1 to 5."""
        span = (self.T[i, i].start, self.T[j, j].end)
        if crosses(span, self.protected):
            return
        ks = [k for k in range(i, j) if (i, k) in self.T and (k + 1, j) in self.T]
        lefts = [self.T[i, k] for k in ks]
        rights = [self.T[k + 1, j] for k in ks]
        c, log_p = self.f(torch.stack([x.e for x in lefts]), torch.stack([x.e for x in rights]))
        self.compositions += len(ks)
        # Of a part that is a single unit only the value of p~ counts.
        log_p_left = [x.log_p_tree.detach() if k == i else x.log_p_tree for k, x in zip(ks, lefts, strict=True)]
        log_p_right = [x.log_p_tree.detach() if k + 1 == j else x.log_p_tree for k, x in zip(ks, rights, strict=True)]
        log_p_tree = log_p + torch.stack(log_p_left) + torch.stack(log_p_right)
        logits = log_p_tree
        if self.noise is not None:
            logits = logits + self.noise(*span, [x.start for x in rights])
        soft = torch.softmax(logits / self.temperature, dim=0)
        hard = torch.zeros_like(soft)
        hard[logits.argmax()] = 1
        alpha = hard - soft.detach() + soft
        splits = [Split(*parts) for parts in zip(lefts, rights, log_p_tree.tolist(), strict=True)]
        self.T[i, j] = Cell(*span, alpha @ c, alpha @ log_p, alpha @ log_p_tree, splits)
        self.cells.append(self.T[i, j])

    def pruning(self) -> None:
        """Function PRUNING of Algorithm 1."""
        u = self.find()
        self.merges.append(self.T[u, u + 1].span)
        pruned: Table = {}
        for i in range(self.n - 1):
            for j in range(i, self.n - 1):
                old = (i + 1 if i >= u + 1 else i, j + 1 if j >= u else j)
                if old in self.T:
                    pruned[i, j] = self.T[old]
        self.T = pruned
        self.n -= 1

    def find(self) -> int:
        """Algorithm 2, where p may be something else than the model's."""
        L = [self.T.get((i, i + 1)) for i in range(self.n - 1)]
        tau: set[int] = set()
        for i in range(self.n - self.m + 1):
            tau |= self.pairs_in_tree(i, i + self.m - 1)
        if not tau:
            tau = {i for i, cell in enumerate(L) if cell is not None}

        def log_p(cell: Cell) -> Tensor:
            if self.merge_score is None:
                return cell.log_p.detach()
            return torch.tensor(self.merge_score(*cell.span), dtype=cell.log_p.dtype)

        def p(i: int) -> Tensor:
            inside = 0 <= i < len(L) and L[i] is not None
            return log_p(L[i]).exp() if inside else torch.zeros(())

        def ambiguity(i: int) -> float:
            complements = [(1 - p(x)).clamp(min=1e-9).log() for x in (i - 1, i + 1)]
            return float(log_p(L[i]) + complements[0] + complements[1])

        score = {i: ambiguity(i) for i in sorted(tau)}
        best = max(score.values())
        rounding = 64 * torch.finfo(L[min(tau)].log_p.dtype).eps * (1 + abs(best))
        return next(i for i in score if score[i] >= best - rounding)  # the leftmost of equals, but for rounding

    def pairs_in_tree(self, i: int, j: int) -> set[int]:
        """The places of the second row that the tree of T[i, j] uses, along splits that are still in the table."""
        pairs = set()
        stack = [(i, j)] if (i, j) in self.T else []
        while stack:
            i, j = stack.pop()
            if j == i + 1:
                pairs.add(i)
            elif j > i:
                scores = {split.at: split.score + self.score_of_parts(split) for split in self.T[i, j].splits}
                living = {k: scores[self.T[k + 1, k + 1].start] for k in range(i, j) if self.T[k, k].end in scores}
                k = max(living, key=lambda k: living[k])
                stack += [(i, k), (k + 1, j)]
        return pairs

    def score_of_parts(self, split: Split) -> float:
        return (
            0.0 if self.merge_score is None else sum(self.merge_score(*part.span) for part in (split.left, split.right))
        )
