"""The perplexity of a compound PCFG on a text: it writes sentences, so that it has one where others have a PPPL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from r2d2.baselines.compound_pcfg import CompoundPCFG
from r2d2.baselines.compound_pcfg_perplexity import Perplexity, perplexity
from r2d2.baselines.model_inducer import longest_chart
from r2d2.data.formats import CorpusFiles
from r2d2.data.pieces import Pieces
from r2d2.evaluation.length_limits import LengthLimits
from r2d2.evaluation.report import Report, Table, shown
from r2d2.model.loading import load_weights

PROTOCOL = (
    "perplexity of a token, ends of sentences not counted: an upper bound, from a lower bound of the likelihood with 4 "
    "draws of the sentence's vector; it cannot be compared with a pseudo-perplexity"
)


def score_grammar(
    folder: Path,
    corpus: CorpusFiles,
    sentences: int | None,
    shortest: int,
    longest: int | None,
    device: torch.device,
) -> tuple[Perplexity, list[str]]:
    """The perplexity of the model in a folder, and what there is to say about it."""
    pieces, model = Pieces.load(folder), load_weights(CompoundPCFG, folder).to(device).eval()
    limits = LengthLimits(shortest, longest, longest_chart(model))
    found = perplexity(model, [sentence.ids for sentence in limits.encode(pieces, corpus, sentences)])
    return found, [
        PROTOCOL,
        f"{folder.name}: compound_pcfg; {pieces.vocab_size:,} tokens in the vocabulary",
        f"{limits.describe(corpus.left_out)}; {found.left_out:,} of one token, which have no derivation, left out",
    ]


def report_grammar(name: str, found: Perplexity, facts: Sequence[str], origin: Mapping[str, Any]) -> Report:
    rows = [["upper bound", shown(found.bound)], ["without the KL term", shown(found.reconstruction)]]
    table = Table("perplexity", (name, f"{found.tokens:,} tokens"), rows)
    return Report("Perplexity", facts, [table], {"model": name, **asdict(found)}, {}, origin)
