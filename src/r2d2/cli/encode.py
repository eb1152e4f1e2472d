"""`r2d2 encode`: the vector of every line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from r2d2.cli.shell import (
    TOKENS_A_BATCH,
    FileArgument,
    ModelArgument,
    PretokenizedOption,
    SplitOption,
    TokensOption,
    check_choice,
    conversation,
    json_error,
    json_place,
    open_output,
)
from r2d2.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from r2d2.parser.streaming import Answer, Prepared

FORMATS = ("npy", "safetensors", "jsonl")
TENSOR = "vectors"  # its name in a safetensors file
SAFETENSORS_HEADER = 256  # bytes, the eight of its length included


def encode(
    model: ModelArgument,
    file: FileArgument = "-",
    format: Annotated[str, typer.Option(help="npy, safetensors or jsonl.")] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="The file to write; only jsonl can do without.")] = None,
    pretokenized: PretokenizedOption = False,
    split: SplitOption = False,
    tokens_a_batch: TokensOption = TOKENS_A_BATCH,
) -> None:
    """Write the vector of every line, that of its whole tree: one line in, one line or row out.

    An empty line gives an empty line in JSON lines, a row of NaN in the other formats. A line that cannot be read gives
    {"error": ...} or a row of NaN, and the exit code is 1. A safetensors file holds one tensor, named vectors.
    """
    check_choice("format", format, FORMATS)
    if format != "jsonl" and out is None:
        raise InputError(f"--format {format} needs --out FILE: it cannot be written to standard output")
    with conversation(model, file, tokens_a_batch) as talk, open_output(out) as output:
        from r2d2.parser.phrases import encode_inputs

        def work(prepared: Sequence[Prepared]) -> list[np.ndarray]:
            return list(encode_inputs(talk.parser.engine, [one.sentence for one in prepared]).numpy())

        windows = talk.answers(work, split=split, pretokenized=pretokenized, to_file=out is not None)
        if format == "jsonl":
            for answers in windows:
                output.writelines(f"{_written(answer, split)}\n".encode() for answer in answers)
                output.flush()
        else:
            header = _npy_header if format == "npy" else _safetensors_header
            width = talk.parser.engine.model.config.cell_width
            table = _Table(output, width, header)
            for answers in windows:
                table.add([answer.result for answer in answers])
            table.finish()


def _written(answer: Answer[np.ndarray], split: bool) -> str:
    if answer.error:
        return json_error(answer)
    if answer.result is None:
        return ""
    vector = [float(f"{value:.6g}") for value in answer.result.tolist()]
    return json.dumps({**json_place(answer, split), "vector": vector}, ensure_ascii=False)


class _Table:
    """Rows of 32-bit numbers after a header that tells how many there are, which is known only at the end."""

    def __init__(self, output: IO[bytes], width: int, header: Callable[[int, int], bytes]) -> None:
        self.output, self.width, self.header = output, width, header
        self.rows = 0
        self.output.write(header(0, width))

    def add(self, vectors: Sequence[np.ndarray | None]) -> None:
        import numpy as np

        rows = np.full((len(vectors), self.width), np.nan, dtype="<f4")
        for row, vector in zip(rows, vectors, strict=True):
            if vector is not None:
                row[:] = vector
        self.output.write(rows.tobytes())
        self.rows += len(rows)

    def finish(self) -> None:
        self.output.seek(0)
        self.output.write(self.header(self.rows, self.width))


def _npy_header(rows: int, width: int) -> bytes:
    """The header of an array; NumPy leaves room in it for the rows to grow, so that its length is always the same.

    >>> len(_npy_header(0, 8)) == len(_npy_header(10**12, 8))
    True
    """
    import numpy as np

    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
    return buffer.getvalue()


def _safetensors_header(rows: int, width: int) -> bytes:
    """The header of a file with one tensor, filled up with spaces, which the format allows.

    >>> len(_safetensors_header(10**12, 3072))
    256
    """
    described = {TENSOR: {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}}
    length = SAFETENSORS_HEADER - 8
    return length.to_bytes(8, "little") + json.dumps(described).encode().ljust(length)
