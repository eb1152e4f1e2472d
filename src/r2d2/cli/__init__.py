"""The command line, one verb a file."""

from r2d2.cli.main import main

__all__ = ["main"]
