"""Inside and outside, values and gradients, against the equations taken one pair at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from baselines import diora_by_the_book as book
from r2d2.baselines.diora_joins import inside_row, outside_row
from r2d2.baselines.diora_passes import Composition, inside_pass, outside_pass, split_log_probabilities, unit
from r2d2.data.batches import spans_across
from r2d2.trees import Span

WIDTH = 5
LENGTHS = [6, 1, 4, 2, 3]
BOUNDS = [[2, 3], [], [1], [], []]
FORBIDDEN = [spans_across(BOUNDS, LENGTHS), None]


def compositions() -> tuple[Composition, Composition]:
    torch.manual_seed(3)
    made = Composition(WIDTH).double(), Composition(WIDTH).double()
    for composition in made:
        torch.nn.init.normal_(composition.S, std=2.0)
    return made


def leaves_and_root(n: int, sentences: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    leaves = torch.randn(n, sentences, WIDTH, generator=generator, dtype=torch.float64)
    root = torch.randn(WIDTH, generator=generator, dtype=torch.float64)
    return unit(leaves).requires_grad_(), unit(root).requires_grad_()


def spans_of(forbidden: Tensor | None, sentence: int) -> set[Span]:
    return set() if forbidden is None else {(start, end) for start, end in forbidden[sentence].nonzero().tolist()}


@pytest.mark.parametrize("forbidden", FORBIDDEN, ids=["bounds", "all"])
def test_every_span_of_every_sentence_is_that_of_the_book(forbidden: Tensor | None) -> None:
    up, down = compositions()
    n = max(LENGTHS)
    leaves, root = leaves_and_root(n, len(LENGTHS))
    vectors, scores = inside_pass(up, leaves, forbidden)
    outside = outside_pass(down, vectors, scores, root, torch.tensor(LENGTHS), forbidden)
    for sentence, length in enumerate(LENGTHS):
        cells = book.inside(up, leaves[:length, sentence], spans_of(forbidden, sentence))
        around = book.outside(down, cells, root)
        left_out = [span for span in spans_of(forbidden, sentence) if span[1] <= length]
        assert len(cells) == len(around) == length * (length + 1) // 2 - len(left_out)
        for (start, end), (vector, score) in cells.items():
            place = inside_row(n, end - start).start + start
            torch.testing.assert_close(vectors[place, sentence], vector)
            torch.testing.assert_close(scores[place, sentence], score)
            place = outside_row(n, end - start).start + start
            torch.testing.assert_close(outside[place, sentence], around[start, end][0])


@pytest.mark.parametrize("forbidden", FORBIDDEN, ids=["bounds", "all"])
def test_gradients_are_those_of_the_book(forbidden: Tensor | None) -> None:
    up, down = compositions()
    n = max(LENGTHS)
    leaves, root = leaves_and_root(n, len(LENGTHS))
    target = torch.randn(n, WIDTH, dtype=torch.float64)
    wanted = [leaves, root, *up.parameters(), *down.parameters()]

    vectors, scores = inside_pass(up, leaves, forbidden)
    words = outside_pass(down, vectors, scores, root, torch.tensor(LENGTHS), forbidden)[outside_row(n, 1)]
    total = sum((words[:length, b] * target[:length]).sum() for b, length in enumerate(LENGTHS))
    found = torch.autograd.grad(total + scores[-1, 0], wanted)

    total = leaves.new_zeros(())
    for b, length in enumerate(LENGTHS):
        cells = book.inside(up, leaves[:length, b], spans_of(forbidden, b))
        around = book.outside(down, cells, root)
        total = total + sum(around[i, i + 1][0] @ target[i] for i in range(length))
        if length == n:
            total = total + cells[0, n][1]
    for ours, theirs in zip(found, torch.autograd.grad(total, wanted), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_vectors_are_of_unit_length() -> None:
    up, down = compositions()
    leaves, root = leaves_and_root(6, 2)
    vectors, scores = inside_pass(up, leaves)
    outside = outside_pass(down, vectors, scores, root, torch.tensor([6, 6]))
    for made in (vectors, outside):
        torch.testing.assert_close(made.norm(dim=-1), torch.ones(21, 2, dtype=torch.float64))


def test_a_word_s_outside_vector_holds_nothing_of_the_word() -> None:
    up, down = compositions()
    leaves, root = leaves_and_root(5, 1)
    vectors, scores = inside_pass(up, leaves)
    words = outside_pass(down, vectors, scores, root, torch.tensor([5]))[outside_row(5, 1)]
    for word in range(5):
        (gradient,) = torch.autograd.grad(words[word].sum(), leaves, retain_graph=True)
        touched = gradient.abs().sum(dim=(1, 2)) > 0
        assert touched.tolist() == [other != word for other in range(5)]


def test_probabilities_of_splits() -> None:
    up, _ = compositions()
    leaves, _ = leaves_and_root(4, 2)
    by_width = split_log_probabilities(up, *inside_pass(up, leaves), n=4)
    assert [tuple(log_p.shape) for log_p in by_width] == [(1, 3, 2), (2, 2, 2), (3, 1, 2)]
    cells = book.inside(up, leaves[:, 1])
    S = up.S.T
    scores = []
    for split in (1, 2, 3):
        (left, left_score), (right, right_score) = cells[0, split], cells[split, 4]
        scores.append(left @ S @ right + left_score + right_score)
    torch.testing.assert_close(by_width[-1][:, 0, 1], torch.stack(scores).log_softmax(0))


@pytest.mark.parametrize("words", [40, 80])
def test_what_is_kept_for_the_way_back_grows_with_the_square_of_the_words(words: int) -> None:
    wide = 64
    composition = Composition(wide)
    torch.nn.init.normal_(composition.S)
    leaves = unit(torch.randn(words, 1, wide)).requires_grad_()
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        inside_pass(composition, leaves)
    spans = words * (words + 1) // 2
    pairs = (words**3 - words) // 6
    assert sum(kept.values()) < 4 * (6 * spans * wide + 2 * pairs + 8 * wide * wide)
