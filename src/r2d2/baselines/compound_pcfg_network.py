"""The networks of a compound PCFG: from a sentence to its vector z, and from z to the grammar that writes it.

Every sentence has a vector z, drawn from N(0, I), and a grammar made from z and from the vectors of the symbols:

    S -> A        softmax over nonterminals of  MLP([root ; z])
    A -> B C      softmax over pairs of symbols of  U [A ; z]
    T -> word     softmax over words of  MLP([T ; z])

where both MLPs are a linear layer, two residual blocks and a linear layer. `Inference` gives the mean and the
logarithm of the variance of q(z | words). Legend as in `compound_pcfg_inside`; v vocabulary, d width, z latent width.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from r2d2.baselines.compound_pcfg_configuration import CompoundPCFGConfig
from r2d2.baselines.compound_pcfg_inside import Grammars

SCORES_AT_ONCE = 1 << 24


class ResidualBlock(nn.Module):
    """x + relu(linear(relu(linear(x))))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        changed: Tensor = self.second(self.first(x).relu()).relu()
        return x + changed


def residual_mlp(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), ResidualBlock(width), ResidualBlock(width))


class GrammarNetwork(nn.Module):
    """From sentence vectors to the logarithms of rule probabilities."""

    def __init__(self, config: CompoundPCFGConfig) -> None:
        super().__init__()
        self.symbols = config.nonterminals + config.preterminals
        d, z = config.hidden_size, config.latent_size
        self.root = nn.Parameter(torch.empty(1, d))
        self.nonterminals = nn.Parameter(torch.empty(config.nonterminals, d))
        self.preterminals = nn.Parameter(torch.empty(config.preterminals, d))
        self.root_hidden = residual_mlp(d + z, d)
        self.root_output = nn.Linear(d, config.nonterminals)
        # U [A ; z] in two parts: a product a symbol and one a sentence, not one for every symbol of every sentence.
        self.rules_of_symbol = nn.Linear(d, self.symbols**2)
        self.rules_of_sentence = nn.Linear(z, self.symbols**2, bias=False)
        self.word_hidden = residual_mlp(d + z, d)
        self.word_output = nn.Linear(d, config.vocab_size)

    def forward(self, z: Float[Tensor, "b z"], input_ids: Int[Tensor, "b n"]) -> Grammars:
        root = self.root_output(self.root_hidden(self._beside(self.root, z))).squeeze(1).log_softmax(-1)
        rules = self.rules_of_symbol(self.nonterminals) + self.rules_of_sentence(z).unsqueeze(1)  # [b, N, S * S]
        rules = rules.log_softmax(-1).unflatten(-1, (self.symbols, self.symbols))
        return Grammars(root, rules, self._emissions(z, input_ids))

    def _emissions(self, z: Float[Tensor, "b z"], input_ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n T"]:
        """log P(T -> word) for the words at hand: their own scores, less the normaliser over all words."""
        h = self.word_hidden(self._beside(self.preterminals, z))  # [b, T, d]
        weight, bias = self.word_output.weight, self.word_output.bias
        scores = weight[input_ids] @ h.mT + bias[input_ids].unsqueeze(-1)
        normaliser = log_normaliser(h.flatten(0, 1), weight, bias).view(h.shape[:2])
        return scores - normaliser.unsqueeze(1)

    @staticmethod
    def _beside(symbols: Float[Tensor, "x d"], z: Float[Tensor, "b z"]) -> Float[Tensor, "b x d+z"]:
        b, x = len(z), len(symbols)
        return torch.cat([symbols.expand(b, x, -1), z.unsqueeze(1).expand(b, x, -1)], dim=-1)


def log_normaliser(
    h: Float[Tensor, "t d"], weight: Float[Tensor, "v d"], bias: Float[Tensor, " v"]
) -> Float[Tensor, " t"]:
    """log sum exp over the vocabulary of W h + b.

    Where that would be too many scores to keep for the backward pass, they are computed in parts, and there anew.
    """
    parts = h.split(max(SCORES_AT_ONCE // len(weight), 1))
    if len(parts) == 1:
        return _log_sum_exp(h, weight, bias)
    return torch.cat([checkpoint(_log_sum_exp, part, weight, bias, use_reentrant=False) for part in parts])


def _log_sum_exp(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, h, weight.mT).logsumexp(-1)


class Inference(nn.Module):
    """q(z | words): a bidirectional LSTM, the greatest value of each output over the sentence, a linear layer."""

    def __init__(self, config: CompoundPCFGConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size)
        self.encoder = nn.LSTM(config.embedding_size, config.encoder_size, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * config.encoder_size, 2 * config.latent_size)

    def forward(
        self, input_ids: Int[Tensor, "b n"], lengths: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b z"], Float[Tensor, "b z"]]:
        """Mean and logarithm of the variance of every sentence's z."""
        packed = pack_padded_sequence(self.embedding(input_ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True, padding_value=-torch.inf)
        mean, log_variance = self.output(states.amax(1)).chunk(2, dim=-1)
        return mean, log_variance
