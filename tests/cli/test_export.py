"""`r2d2 export`: from a run to a bundle, whose card tells what was measured and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cli.conftest import Command
from cli.tiny_model import save_tiny_model
from r2d2.parser import Parser
from r2d2.training.recipe import read_earlier_recipes, read_recipe, write_earlier_recipes
from r2d2.training.shipped import find_recipe

FIGURES = {
    "sentence_f1": 48.1149,
    "strict_sentence_f1": None,
    "baselines": {"right": {"sentence_f1": 40.0}},
    "facts": ["60 sentences scored", "preparation kim2019"],
    "command": "r2d2 evaluate parsing tiny --gold gold.txt --json",
    "date": "2026-01-02T03:04:05+00:00",
}


@pytest.fixture
def finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = save_tiny_model(tmp_path / "run" / "model")
    recipe = read_recipe(find_recipe("english-small"), ["corpus.root=/home/me/data", "seed=3"])
    (folder / "recipe.yaml").write_text(recipe.to_yaml())
    records = [{"step": 20, "loss": 5.0, "seconds": 90.0}, {"step": 40, "eval_loss": 4.0, "seconds": 5400.0}]
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (tmp_path / "gum.json").write_text(json.dumps(FIGURES))
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_run_becomes_a_bundle(finished_run: Path, command: Command) -> None:
    options = ["--half", "--figures", "gum.json", "--license", "cc-by-sa-4.0", "--language", "en"]
    code, output, errors = command("export", "run", "models/tiny", *options)
    assert (code, errors) == (0, "")
    assert output.startswith("wrote models/tiny: ")
    assert "parameters in half precision" in output
    text = "The old man saw"
    assert (
        Parser.from_pretrained("models/tiny").parse(text).tree == Parser.from_pretrained("run/model").parse(text).tree
    )

    _, front, card = Path("models/tiny/README.md").read_text().split("---\n", 2)
    matter = yaml.safe_load(front)
    assert (matter["license"], matter["language"], matter["library_name"]) == ("cc-by-sa-4.0", "en", "r2d2")
    assert "constituency-parsing" in matter["tags"]
    assert card.startswith("\n# tiny\n")
    for line in (
        "| threshold m | 3 |",
        "| weights | stored as float16, loaded as float32 |",
        "| recipe | english-small |",
        "| text | english-small/guides.trees (treebank, which guides); "
        "wikitext-2/train.txt (wikitext, 12,000 sentences) |",
        "| length | 40 minutes of updates |",
        "| seed | 3 |",
        "| time | 1.50 hours, evaluating and saving not counted |",
        "The weights: cc-by-sa-4.0. R2D2's code: Apache-2.0.",
        "### gum",
        "| sentence F1 | 48.11 |",
        "| sentence F1 of right trees | 40.00 |",
        "- 60 sentences scored",
        "- `r2d2 evaluate parsing tiny --gold gold.txt --json`, 2026-01-02T03:04:05+00:00",
    ):
        assert line in card.splitlines(), line
    assert "strict" not in card
    assert "/home/me" not in card + Path("models/tiny/recipe.yaml").read_text()


def test_a_card_has_all_trainings_of_a_model_that_went_on_from_another(finished_run: Path, command: Command) -> None:
    first = read_recipe(find_recipe("wikitext2-small"), ["corpus.root=/home/me/data"])
    write_earlier_recipes([first], finished_run)
    assert command("export", "run", "bundle")[0] == 0
    card = Path("bundle/README.md").read_text().splitlines()
    places = [card.index(f"| recipe | {name} |") for name in ("wikitext2-small", "english-small")]
    assert places == sorted(places)
    assert len([line for line in card if line.startswith("| time |")]) == 1, "that of the last one alone is known"
    assert any("trained on text and guided by trees" in line for line in card)
    (told,) = read_earlier_recipes(Path("bundle"))
    assert (told.name, told.corpus.root) == ("wikitext2-small", "data")


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ("english-small", "trained on text and guided by trees:"),
        ("wikitext2-small", "trained from raw text without a treebank:"),
    ],
)
def test_a_card_says_whether_trees_were_trained_on(
    finished_run: Path, command: Command, recipe: str, told: str
) -> None:
    (finished_run / "recipe.yaml").write_text(read_recipe(find_recipe(recipe)).to_yaml())
    assert command("export", "run", "bundle")[0] == 0
    assert told in Path("bundle/README.md").read_text()


def test_a_card_says_nothing_that_is_not_known(finished_run: Path, command: Command) -> None:
    (finished_run / "recipe.yaml").unlink()
    assert command("export", "run/model", "bundle")[0] == 0
    _, front, card = Path("bundle/README.md").read_text().split("---\n", 2)
    assert set(yaml.safe_load(front)) == {"library_name", "tags"}
    for line in ("The recipe is not known.", "None are given.", "| weights | stored as float32, loaded as float32 |"):
        assert line in card.splitlines(), line
    assert "The licence of the weights is not stated." in card
    assert "F1" not in card
    assert "trained on text: " in card
    assert not Path("bundle/recipe.yaml").exists()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("training={epochs: 2.5}", "| length | 2.5 epochs |"),
        ("training={minutes: 600}", "| length | 600 minutes of updates |"),
    ],
)
def test_a_run_may_be_measured_in_epochs_or_minutes(
    finished_run: Path, command: Command, change: str, line: str
) -> None:
    (finished_run / "recipe.yaml").write_text(read_recipe(find_recipe("english-small"), [change]).to_yaml())
    assert command("export", "run/model", "bundle")[0] == 0
    lines = Path("bundle/README.md").read_text().splitlines()
    assert line in lines
    assert not [line for line in lines if line.startswith("| time |")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent", "out"], "absent is neither a folder nor a model's name"),
        (["run", "run"], "run exists already"),
        (["empty", "out"], "empty holds no model"),
        (["run", "out", "--figures", "absent.json"], "absent.json: cannot be read: No such file"),
        (["run", "out", "--figures", "broken.json"], "broken.json:2: not JSON"),
        (["run", "out", "--figures", "list.json"], "list.json: must be what r2d2 evaluate ... --json prints"),
        (["run", "out", "--figures", "invented.json"], "invented.json: must be what r2d2 evaluate ... --json prints"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(
    finished_run: Path, command: Command, arguments: list[str], message: str
) -> None:
    Path("empty").mkdir()
    Path("broken.json").write_text('{"sentence_f1":\n')
    Path("list.json").write_text("[1]")
    Path("invented.json").write_text('{"sentence_f1": 99.9}')
    before = sorted(Path().iterdir())
    code, output, errors = command("export", *arguments)
    assert message in errors
    assert (code, output, len(errors.splitlines())) == (2, "", 1)
    assert sorted(Path().iterdir()) == before
