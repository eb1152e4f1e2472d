"""R2D2 as Hugging Face classes, known to the Auto classes once this package is imported."""

from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from r2d2.model.configuration import R2D2Config
from r2d2.model.language_modeling import R2D2ForBidirectionalLM, R2D2LMOutput
from r2d2.model.modeling import Merges, R2D2Model, R2D2Output

AutoConfig.register("r2d2", R2D2Config)
AutoModel.register(R2D2Config, R2D2Model)
AutoModelForMaskedLM.register(R2D2Config, R2D2ForBidirectionalLM)

__all__ = ["Merges", "R2D2Config", "R2D2ForBidirectionalLM", "R2D2LMOutput", "R2D2Model", "R2D2Output"]
