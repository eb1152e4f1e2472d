"""Compiles the C files of r2d2.native while the package is built or installed.

Without a compiler, or if it fails, the package is built without them: slower on processors, the same otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Fast arithmetic by its parts: with -ffast-math itself, GCC links in code by which the whole process takes tiny numbers
# for zero from the moment the library is loaded.
ARITHMETIC = ["-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math"]
FLAGS = ["-O3", *ARITHMETIC, "-fPIC", "-shared", "-std=gnu11", "-Wall", "-Wextra"]


class NativeBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        folder = Path(self.root) / "src" / "r2d2" / "native"
        library = folder / "_native.so"
        if not compile_library(folder, library):
            library.unlink(missing_ok=True)
            self.app.display_warning("no C compiler: R2D2 is built without its native parts")
            return
        build_data["artifacts"].append("src/r2d2/native/_native.so")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compile_library(folder: Path, library: Path) -> bool:
    """Make a shared library of a folder's C files beside, and move it there; whether it could be made."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        return False
    fresh = library.with_suffix(".new")
    sources = map(str, sorted(folder.glob("*.c")))
    command = [*compiler, *FLAGS, f'-DSOURCES="{_digest_of(folder)}"', *sources, "-lm", "-o", str(fresh)]
    if subprocess.run(command, check=False).returncode != 0:
        return False
    os.replace(fresh, library)
    return True


def _digest_of(folder: Path) -> str:
    """What r2d2.native.sources makes of the files; the package itself is not there yet."""
    path = Path(__file__).parent / "src" / "r2d2" / "native" / "sources.py"
    spec = importlib.util.spec_from_file_location("sources", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    digest: str = module.digest_of(folder)
    return digest
