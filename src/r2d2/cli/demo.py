"""`r2d2 demo`: a forward pass on a few sentences, with the trees of an untrained model."""

from __future__ import annotations

import typer

SENTENCES = (
    "the old man saw a dog",
    "what she said surprised everyone in the room",
    "phrases are composed from smaller phrases until one vector stands for the whole sentence",
)
SEED = 0


def demo() -> None:
    """Run an untrained model on three sentences and draw its trees."""
    import torch

    from r2d2.model import R2D2Config, R2D2ForBidirectionalLM
    from r2d2.trees import draw

    sentences = [sentence.split() for sentence in SENTENCES]
    vocabulary = {word: 110 + place for place, word in enumerate(sorted({w for words in sentences for w in words}))}
    torch.manual_seed(SEED)
    config = R2D2Config.small(vocab_size=110 + len(vocabulary))
    model = R2D2ForBidirectionalLM(config).eval()
    longest = max(map(len, sentences))
    ids = torch.tensor([[vocabulary[w] for w in words] + [0] * (longest - len(words)) for words in sentences])
    mask = torch.tensor([[1] * len(words) + [0] * (longest - len(words)) for words in sentences])
    with torch.no_grad():
        output = model(ids, mask, labels=ids, return_chart=True)

    typer.echo("This model is untrained: its weights are random, and so are its trees.\n")
    for sentence, words in enumerate(sentences):
        typer.echo(draw(output.chart.tree(sentence).with_leaves(words)))
    tokens = int(mask.sum())
    typer.echo(
        f"{tokens} words, {output.chart.compositions} compositions with m = {config.m} "
        f"({output.chart.compositions / tokens:.1f} a word), loss {output.loss:.2f} "
        f"(a uniform guess over {config.vocab_size} words: {torch.tensor(config.vocab_size).log():.2f})"
    )
