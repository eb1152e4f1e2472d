"""Layers import downwards only (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "r2d2"
LAYERS = [
    "errors",
    "version",
    "writing",
    "native",
    "trees",
    "metrics",
    "data",
    "chart",
    "model",
    "baselines",
    "evaluation",
    "training",
    "parser",
    "reproduce",
    "cli",
]  # lowest first
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)


def layers_imported_by(path: Path) -> set[str]:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            names = [node.module] if node.module != "r2d2" else [f"r2d2.{alias.name}" for alias in node.names]
        else:
            continue
        imported |= {name.split(".")[1] for name in names if name.startswith("r2d2.")}
    return imported


def test_every_package_has_its_place() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"} <= set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path: Path) -> None:
    own = LAYERS.index(path.relative_to(SOURCE).parts[0])
    for layer in layers_imported_by(path):
        assert LAYERS.index(layer) <= own, f"{LAYERS[own]} must not import {layer}"
