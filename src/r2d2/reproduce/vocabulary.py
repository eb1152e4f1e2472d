"""The vocabulary that all rows of a table have in common, and whether what they are made of is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from r2d2.data.pieces import Pieces
from r2d2.data.vocabularies import train_wordpiece
from r2d2.errors import InputError
from r2d2.training.material import Texts
from r2d2.training.recipe import Source, TokenizerSection
from r2d2.writing import common_folder

TOKENIZER = "tokenizer"


def check_data(sources: list[Source], vocabulary: int | str | None, data: Path) -> None:
    """Raise if a text or a vocabulary is missing, before hours are spent on what does not need it."""
    Texts(sources, data, 0)
    if isinstance(vocabulary, str) and not (data / vocabulary).is_file():
        raise InputError(f"{data / vocabulary}: no such file")


def shared_tokenizer(
    vocabulary: int | str, sources: Sequence[Source], data: Path, folder: Path, *, chinese: bool = False
) -> TokenizerSection:
    """A vocabulary file below `data`, or so many pieces made once of texts, in the folder of the table.

    All of a file is used, also where rows are trained on a part of it.
    """
    if isinstance(vocabulary, str):
        return TokenizerSection(vocab=vocabulary, chinese=chinese)
    place = folder / TOKENIZER
    if not place.is_dir():
        whole = [Source(one.path, one.format, prepare=one.prepare) if one.path else one for one in sources]
        pieces = train_wordpiece(Texts(whole, data, 0), vocabulary, chinese=chinese)
        with common_folder(place) as unfinished:
            pieces.save(unfinished)
    return TokenizerSection(folder=str(place.resolve()), chinese=chinese)


def load_pieces(section: TokenizerSection, data: Path) -> Pieces:
    """The tokenizer that `shared_tokenizer` names."""
    if section.vocab is not None:
        return Pieces.from_vocab(data / section.vocab, lowercase=section.lowercase)
    assert section.folder is not None
    return Pieces.load(section.folder)
