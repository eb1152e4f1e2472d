"""R2D2: a recursive Transformer over differentiable trees (Hu et al., ACL 2021)."""

from r2d2.version import __version__

__all__ = ["__version__"]
