"""The built wheel, installed where the source tree is out of reach: the command parses with a model by its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from cli.tiny_model import save_tiny_model
from r2d2.parser import Parser, bundled_models

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
NAME = "stand-in"
TEXT = "The old man saw a big boat."
OWN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "R2D2_NATIVE")


def run(*command: str | Path, folder: Path, text: str = "") -> str:
    """Run a command in a folder, without what the environment says of other places; returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        input=text,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("saved") / NAME)


@pytest.fixture(scope="module")
def wheel(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the tree, to whose models the tiny one is added; the copy is gone when this is done."""
    pytest.importorskip("hatchling", reason="hatchling builds the package, and is not installed")
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheels")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for name in ("src", "recipes", "models"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "_native.so"))
    shutil.copytree(model, tree / "models" / NAME)
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", built, tree, folder=built)
    shutil.rmtree(tree)
    (file,) = built.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment that has the wheel, and borrows what the wheel needs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", programs / "python", "install", *options, wheel, folder=folder)
    # A folder named in a .pth file is searched last, and its own .pth files, such as that of the editable R2D2, do not
    # count.
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return programs


def test_what_is_in_the_wheel(wheel: Path, model: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    recipes = {f"r2d2/recipes/{path.name}" for path in (ROOT / "recipes").iterdir()}
    models = {f"r2d2/models/{NAME}/{path.name}" for path in model.iterdir()}
    modules = {f"r2d2/{path.relative_to(ROOT / 'src' / 'r2d2')}" for path in (ROOT / "src" / "r2d2").rglob("*.py")}
    assert recipes | models | modules <= names
    assert ("r2d2/native/_native.so" in names) == (shutil.which("cc") is not None)
    assert not [name for name in names if name.startswith(("tests/", "docs/", "src/"))]


WHERE = """
import r2d2
from r2d2.native import library
from r2d2.parser import find_model
from r2d2.training.shipped import find_recipe
print(r2d2.__file__, find_model("stand-in"), find_recipe("grammar"), sep="\\n")
print("native" if library is not None else "tensors")
"""


def test_everything_is_found_in_the_new_environment(installed: Path, tmp_path: Path) -> None:
    *places, way = run(installed / "python", "-c", WHERE, folder=tmp_path).splitlines()
    for place in places:
        assert Path(place).is_relative_to(installed.parent), place
        assert not Path(place).is_relative_to(ROOT), place
    assert way == ("tensors" if shutil.which("cc") is None else "native")


@pytest.mark.parametrize("name", [NAME, *sorted(bundled_models())])
def test_the_command_parses_with_a_model_by_its_name(name: str, installed: Path, model: Path, tmp_path: Path) -> None:
    printed = run(installed / "r2d2", "parse", name, folder=tmp_path, text=f"{TEXT}\n\n")
    expected = Parser.from_pretrained(model if name == NAME else name, device="cpu").parse(TEXT).to_brackets()
    assert printed == f"{expected}\n\n"


def test_the_english_model_is_among_them() -> None:
    assert "english-small" in bundled_models()
