"""A little text that has words in common, marks, numbers and Chinese characters."""

from __future__ import annotations

TEXT = [
    "The old dog saw the other dogs near the river.",
    "The dogs barked, and the old river rose again and again.",
    "Barking dogs are seldom seen: the river was co-founded in 1998 and 1999.",
    "旧狗看见河。 狗看河。",
] * 3
