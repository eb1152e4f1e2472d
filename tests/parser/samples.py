"""A Parser with random weights, and its model in a folder."""

from __future__ import annotations

from functools import cache

from cli.tiny_model import tiny_model
from r2d2.chart import Threshold
from r2d2.parser import Parser

TEXTS = [
    "The old man saw a big boat.",
    "",
    "He was unbelievably tired, and then he slept (frisch)!",
    "boat",
    "man saw",
    "He saw the old man, and then he slept, and the old man was tired, and then a big boat was unbelievably big.",
]


@cache
def tiny_parser(tokens_a_batch: int = 64, m: Threshold = 3) -> Parser:
    model, pieces = tiny_model()
    model.config.m = m
    return Parser(model, pieces, tokens_a_batch=tokens_a_batch)
