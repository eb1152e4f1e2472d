"""What the documents say works: commands are understood, Python runs, the tutorial and the notebook go through."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.tiny_model import save_tiny_model
from documents import arguments_of, blocks, run_command, run_notebook
from r2d2.cli.main import app
from r2d2.data.grammar import generate, sentence
from r2d2.parser import Parse, Parser, Words, bundled_models, names
from r2d2.trees import read_brackets

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODEL = "english-small"
# What makes the tutorial short enough for a test: a smaller text, fewer updates, fewer sentences to score.
SHORTER = {
    "generate(20000, ": "generate(300, ",
    "generate(500, ": "generate(30, ",
    "steps: 800": "steps: 10",
    "training.steps=400": "training.steps=4",
    "training.steps=100 ": "training.steps=4 ",
    "vocab_size: 1000": "vocab_size: 300",
    "--sentences 50": "--sentences 3",
}


@pytest.fixture
def stand_in(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny model under the name of the one that comes with R2D2."""
    folder = save_tiny_model(tmp_path_factory.mktemp("models") / MODEL)
    monkeypatch.setattr(names, "_FOLDERS", (folder.parent,))
    return folder


def fault(arguments: list[str]) -> str:
    """What the command line does not know of some arguments; nothing is done, for it is asked for help on them."""
    answer = CliRunner().invoke(app, [*arguments, "--help"])
    return answer.output if answer.exit_code else ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_command_is_understood(document: Path) -> None:
    commands = [(block.place, command) for block in blocks(document, "sh") for command in block.commands()]
    faults = [
        f"{place}: {command}: {found}"
        for place, command in commands
        if (arguments := arguments_of(command)) is not None and (found := fault(arguments))
    ]
    assert not faults


@pytest.mark.parametrize("wrong", ["prase model", "parse model --formt json", "evaluate tree"])
def test_a_command_that_does_not_exist_is_noticed(wrong: str) -> None:
    assert "No such" in fault(wrong.split())


@pytest.mark.parametrize("document", ["README.md", "docs/parser.md", "docs/formats.md"])
def test_python_runs(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_tiny_model(tmp_path / "demo" / "model")
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / document, "python")
    assert found
    for block in found:
        exec(compile(block.code, block.place, "exec"), {"__name__": "__main__"})


@pytest.mark.slow
def test_the_commands_of_the_front_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As they stand there, but for sizes; a text, a corpus, a treebank and trees are where they are named."""
    monkeypatch.chdir(tmp_path)
    sentences = [sentence(tree) for tree in generate(60, seed=1)]
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in sentences[:5]))
    for part in ("train", "valid"):
        corpus = tmp_path / "FOLDER" / "wikitext-2" / f"{part}.txt"
        corpus.parent.mkdir(parents=True, exist_ok=True)
        corpus.write_text(" = Heading = \n" + "".join(f" {line} . \n" for line in sentences))
    section = tmp_path / "wsj" / "23"
    section.mkdir(parents=True)
    (section / "wsj_2300.mrg").write_text("( (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .)) )\n")
    (tmp_path / "trees.txt").write_text("((the dog) (sees (a cat)))\n")
    shorter = {
        "corpus.root=FOLDER": "corpus.root=FOLDER training.steps=2 tokenizer.vocab_size=200 model.hidden_size=16",
        "r2d2 bench": "r2d2 bench --widths 64 --repeat 1",
    }
    commands = [command for block in blocks(ROOT / "README.md", "sh") for command in block.commands()]
    assert len(commands) == 5
    printed = []
    for command in commands:
        for long, short in shorter.items():
            command = command.replace(long, short)
        run_command(command)
        printed.append(capfd.readouterr().out)
    parsed, _, scored, language_model, speed = printed
    assert [len(json.loads(line)["words"]) for line in parsed.splitlines()] == [len(s.split()) for s in sentences[:5]]
    assert (tmp_path / "runs" / "wikitext2-small" / "model" / "model.safetensors").exists()
    assert re.search(r"100\.00", scored)
    assert re.search(r"per piece +\d", language_model)
    assert "one sentence of 20 words" in speed


CARD = ROOT / "models" / MODEL / "README.md"


@pytest.mark.parametrize("document", [CARD, ROOT / "docs" / "tutorial.md"], ids=lambda path: path.stem)
def test_trees_that_are_shown_are_those_of_the_model_that_comes_with_r2d2(document: Path) -> None:
    shown = re.findall(r"^\( \(.*\)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    trees = [tree for line in shown for tree in read_brackets(line)]
    parses = Parser.from_pretrained(MODEL).parse([Words(tree.leaves) for tree in trees])
    assert [parse.to_brackets() for parse in parses] == shown


def test_the_picture_on_the_front_page_is_that_of_the_model_that_comes_with_r2d2() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^!\[(.*)\]\((docs/tree\.svg)\)$", page, re.MULTILINE)
    assert found is not None
    picture = (ROOT / found[2]).read_text(encoding="utf-8")
    assert Parser.from_pretrained(MODEL).parse(found[1]).to_svg() == picture.strip()


def test_the_json_of_a_parse_has_the_keys_that_are_documented(stand_in: Path) -> None:
    (block,) = blocks(ROOT / "docs" / "formats.md", "json")
    documented = json.loads(block.code)
    parse = Parser.from_pretrained(MODEL).parse(documented["text"])
    assert keys(json.loads(parse.to_json())) == keys(documented)


def keys(value: Any) -> Any:
    """The keys of objects, of those in a list once."""
    if isinstance(value, dict):
        return {key: keys(item) for key, item in value.items()}
    if isinstance(value, list) and isinstance(value[0], dict):
        return keys(value[0])
    return None


@pytest.mark.slow
def test_the_tutorial_from_its_start_to_its_end(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    unused = set(SHORTER)
    for block in blocks(ROOT / "docs" / "tutorial.md", "sh", "python"):
        if block.not_run:
            continue
        unused -= {long for long in SHORTER if long in block.code}
        if block.language == "python":
            exec(compile(shorter(block.code), block.place, "exec"), {"__name__": "__main__"})
            continue
        for command in block.commands():
            capfd.readouterr()
            run_command(shorter(command))
            output, errors = capfd.readouterr()
            assert output or errors or ">" in command or "--out" in command, f"{block.place}: {command} says nothing"
            assert "error" not in output + errors, f"{block.place}: {command}: {output + errors}"
    assert not unused, "the tutorial has changed, and is run at full length"
    assert len((tmp_path / "predicted.trees").read_text().splitlines()) == 30
    card = (tmp_path / "my-model" / "README.md").read_text()
    figure = json.loads((tmp_path / "test-f1.json").read_text())["sentence_f1"]
    assert f"| sentence F1 | {figure:.2f} |" in card
    assert "| text | train.txt (lines) |" in card


def shorter(code: str) -> str:
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL, "one trained in the notebook"])
def test_the_notebook_runs_with_and_without_a_bundled_model(
    model: str, stand_in: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if model != MODEL:
        shutil.rmtree(stand_in)
        assert bundled_models() == {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    values = run_notebook(ROOT / "docs" / "tour.ipynb")
    assert (values[0] == MODEL) == (model == MODEL)
    pictures = [value._repr_svg_() for value in values if isinstance(value, Parse)]
    assert len(pictures) == 2
    assert all(picture.startswith("<svg") for picture in pictures)
    output, _ = capfd.readouterr()
    assert re.search(r"^R2D2 +\d+\.\d\d$", output, re.MULTILINE)
    assert re.search(r"^right +\d+\.\d\d$", output, re.MULTILINE)


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = json.loads((ROOT / "docs" / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if "outputs" in cell)


TABLES = ROOT / "docs" / "tables"
SHOWN = sorted(path.relative_to(TABLES) for path in TABLES.glob("*/table*.md"))


@pytest.mark.parametrize("table", SHOWN, ids=str)
def test_a_table_that_is_shown_is_that_of_its_rows(table: Path, tmp_path: Path) -> None:
    shutil.copytree(TABLES, tmp_path, dirs_exist_ok=True)
    before = (TABLES / table).read_text(encoding="utf-8")
    answer = CliRunner().invoke(app, ["reproduce", table.stem, *drawn_from(table.parent), "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    drawn = (tmp_path / table).read_text(encoding="utf-8")
    heading = "\n## "  # above the first one stand the command, versions and the date
    assert drawn[drawn.index(heading) :] == before[before.index(heading) :]
    for picture in (TABLES / table.parent).glob(f"{table.stem}*.svg"):
        assert (tmp_path / table.parent / picture.name).read_bytes() == picture.read_bytes()


def drawn_from(folder: Path) -> list[str]:
    """The options that draw a table, from rows that are done, on the treebank that they were done on."""
    facts = TABLES / folder / "treebank" / "treebank.json"
    if not facts.exists():
        return ["--draw"]
    treebank = json.loads(facts.read_text(encoding="utf-8"))
    gold = [] if treebank["source"] == "grammar" else ["--gold", treebank["source"]]
    text = ["--text", treebank["text"], "--text-sentences", str(treebank["text_sentences"])] if treebank["text"] else []
    return ["--draw", *gold, *text]


def test_the_results_have_the_figures_of_the_rows() -> None:
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for path in sorted((TABLES / "table1-small" / "rows").glob("*-[16]0.json")):
        pppl = json.loads(path.read_text(encoding="utf-8"))["figures"]["macro"]
        assert f"{pppl:.2f}" in results, path.name
    for table in TABLES.glob("parsing-*/table3.md"):
        for block in table.read_text(encoding="utf-8").split("\n\n"):
            if block.startswith("| system"):
                assert block.strip() in results, f"{table.parent.name}: another table is shown:\n{block}"
