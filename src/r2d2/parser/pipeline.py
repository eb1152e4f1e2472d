"""The Parser as a Hugging Face pipeline: `pipeline("constituency-parsing", model=...)`.

The task is known to transformers once `r2d2.parser` has been imported. The model is a folder with its tokenizer, or a
loaded model, given together with its tokenizer. Inputs are those of `Parser.parse`, put into batches in its way, so
that the pipeline's own batch_size has no meaning here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from transformers import AutoModelForMaskedLM, Pipeline
from transformers.pipelines import PIPELINE_REGISTRY

from r2d2.data.pieces import Pieces
from r2d2.errors import InputError
from r2d2.model import R2D2ForBidirectionalLM
from r2d2.parser.parser import Parser
from r2d2.parser.tokenised import Item, Words

TASK = "constituency-parsing"


class ConstituencyParsingPipeline(Pipeline):
    """Gives for each input what `Parse.to_dict` has, and its tree in brackets under "brackets"."""

    _load_tokenizer = True  # type: ignore[assignment]
    _load_processor = _load_image_processor = _load_video_processor = _load_feature_extractor = False  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not isinstance(self.model, R2D2ForBidirectionalLM):
            raise InputError(f"model ({type(self.model).__name__}) must be an R2D2ForBidirectionalLM")
        self.parser = Parser(self.model, Pieces(cast(Any, self.tokenizer)))

    def __call__(
        self, inputs: Any, *args: Any, num_workers: Any = None, batch_size: Any = None, **parameters: Any
    ) -> Any:
        """Parse one input, for a dictionary, or several, for a list of them; `level` is "word" or "piece"."""
        one = isinstance(inputs, str | Words)
        _, forward, _ = self._sanitize_parameters(*args, **parameters)
        sentences = self.preprocess([inputs] if one else inputs)
        results = self.postprocess(self._forward(sentences, **(self._forward_params | forward)))
        return results[0] if one else results

    def _sanitize_parameters(self, level: str | None = None, **others: Any) -> tuple[dict[str, Any], ...]:
        if others:
            raise InputError(f"{next(iter(others))} is no parameter of {TASK}: level is the only one")
        return {}, {} if level is None else {"level": level}, {}

    def preprocess(self, input_: Iterable[Item], **_: Any) -> Any:
        return self.parser.tokenise(input_)

    def _forward(self, input_tensors: Any, **parameters: Any) -> Any:
        return self.parser.parse_batch(input_tensors, **parameters)

    def postprocess(self, model_outputs: Any, **_: Any) -> list[dict[str, Any]]:
        return [parse.to_dict() | {"brackets": parse.to_brackets()} for parse in model_outputs]


def register() -> None:
    """Make the task known to `transformers.pipeline`."""
    PIPELINE_REGISTRY.register_pipeline(TASK, ConstituencyParsingPipeline, pt_model=AutoModelForMaskedLM, type="text")
