"""R2D2: a recursive Transformer over differentiable trees (Hu et al., ACL 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r2d2.version import __version__

if TYPE_CHECKING:
    from r2d2.parser import Parser

__all__ = ["Parser", "__version__"]


def __getattr__(name: str) -> Any:
    """The Parser, imported when it is first asked for: it brings torch and transformers with it."""
    if name == "Parser":
        from r2d2.parser import Parser

        return Parser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
