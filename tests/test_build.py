"""The package with its native parts, without them, and where they cannot be made."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from r2d2.model import products
from r2d2.native import library, load

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "r2d2" / "native"
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def hatch_build() -> ModuleType:
    pytest.importorskip("hatchling", reason="hatchling builds the package, and is not installed")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("compiler", "exists"), [("no-such-compiler", False), ("no-such-compiler -m64", False), ("false", True)]
)
def test_without_a_compiler_no_library_is_made(
    compiler: str, exists: bool, hatch_build: ModuleType, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert (shutil.which(compiler.split()[0]) is not None) == exists
    assert hatch_build.compile_library(SOURCES, tmp_path / "_native.so") is False
    assert list(tmp_path.iterdir()) == []


@needs_compiler
def test_a_source_with_an_error_makes_no_library_and_spoils_none(
    hatch_build: ModuleType, tmp_path: Path, capfd
) -> None:
    (tmp_path / "wrong.c").write_text("int half(int x) { return x / ; }", encoding="utf-8")
    (tmp_path / "_native.so").write_bytes(b"the old one")
    assert hatch_build.compile_library(tmp_path, tmp_path / "_native.so") is False
    assert (tmp_path / "_native.so").read_bytes() == b"the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_native.so", "wrong.c"]
    assert "wrong.c" in capfd.readouterr().err


TINY_NUMBERS = """
import ctypes, sys
import numpy
ctypes.CDLL(sys.argv[1])
assert numpy.float64(5e-324) * 1 > 0, "tiny numbers have become zero"
"""


@needs_compiler
def test_the_library_compiles_without_warnings_and_loading_it_changes_no_arithmetic(
    hatch_build: ModuleType, tmp_path: Path, capfd
) -> None:
    assert hatch_build.compile_library(SOURCES, tmp_path / "_native.so") is True
    assert [path.name for path in tmp_path.iterdir()] == ["_native.so"]
    assert capfd.readouterr().err == ""
    subprocess.run([sys.executable, "-c", TINY_NUMBERS, tmp_path / "_native.so"], check=True)


@needs_compiler
def test_a_library_of_other_files_is_not_loaded(hatch_build: ModuleType, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("R2D2_NATIVE", raising=False)
    folder, made = tmp_path / "native", tmp_path / "native" / "_native.so"
    folder.mkdir()
    for name in ("sources.c", "rows.h"):  # no others are needed to tell what a library was made of
        shutil.copy(SOURCES / name, folder)
    assert hatch_build.compile_library(folder, made) is True
    assert load(made) is not None
    with (folder / "rows.h").open("a", encoding="utf-8") as header:
        header.write("/* changed */\n")
    with pytest.warns(UserWarning, match="compiled from other C files"):
        assert load(made) is None
    for source in [*folder.glob("*.c"), *folder.glob("*.h")]:
        source.unlink()
    assert load(made) is not None  # nothing to compare it with


@needs_compiler
@pytest.mark.skipif(os.environ.get("R2D2_NATIVE") == "0", reason="the native parts are turned off")
def test_where_there_is_a_compiler_the_library_is_there() -> None:
    """Otherwise every test of the native parts would pass over itself in silence."""
    assert library is not None


CPU = Path("/proc/cpuinfo")
HAS_AVX2 = CPU.exists() and {"avx2", "fma", "bmi2"} <= set(CPU.read_text(encoding="utf-8").split())


@needs_compiler
@pytest.mark.skipif(os.environ.get("R2D2_NATIVE") == "0", reason="the native parts are turned off")
@pytest.mark.skipif(not HAS_AVX2 or "clang" in os.environ.get("CC", ""), reason="products in C are for GCC and AVX2")
def test_where_the_processor_is_one_for_them_the_products_are_there() -> None:
    """For the same reason."""
    assert products.native is not None


PARSE = """
import torch
from r2d2.native import library
from r2d2.model import R2D2Config, R2D2Model
print("native" if library is not None else "tensors")
torch.manual_seed(0)
model = R2D2Model(R2D2Config.small(vocab_size=200)).eval()
ids = torch.randint(110, 200, (3, 17))
with torch.no_grad():
    chart = model(ids, return_chart=True).chart
for sentence in range(3):
    print(chart.tree(sentence).to_nested())
"""


def parse_with(setting: str) -> list[str]:
    environment = {**os.environ, "R2D2_NATIVE": setting}
    done = subprocess.run(
        [sys.executable, "-c", PARSE], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.splitlines()


def test_the_package_works_without_its_native_parts() -> None:
    way, *trees = parse_with("0")
    assert way == "tensors"
    assert len(trees) == 3
    if library is not None:
        assert parse_with("1") == ["native", *trees]
