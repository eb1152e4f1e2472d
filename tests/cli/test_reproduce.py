"""`r2d2 reproduce` as a user runs it, at the scale that takes seconds."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.conftest import Command
from r2d2.version import __version__
from r2d2.writing import claimed
from training.interrupting import interrupt_after

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Command:
    monkeypatch.chdir(tmp_path)

    return partial(command, "reproduce")


def read(path: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return value


def row_of(table: str, name: str) -> list[str]:
    return next(line for line in table.splitlines() if line.startswith(f"  {name}  ")).split()


def test_a_row_of_table1_interrupted_and_gone_on_with(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["--only", "bert-3-10", "--only", "t-lstm-m4-10"]
    command = ["table1", "--scale", "debug", *rows, "--matmul", "medium"]
    with monkeypatch.context() as patched:
        interrupt_after(3, patched)
        code, out, err = run(*command)
    assert code == 130
    assert out == ""
    assert f"stopped; what is done is kept. Go on with: r2d2 reproduce {' '.join(command)}" in err
    assert "Traceback" not in err
    folder = Path("reproduced/table1-debug")
    done = [path.stem for path in (folder / "rows").iterdir()]
    assert done == ["counts"], "the first trial of a learning rate was not over"

    code, out, err = run(*command)
    assert code == 0, err
    assert "resuming from" in err
    result = read("reproduced/table1-debug/rows/bert-3-10.json")
    assert (result["row"], result["seed"], result["version"]) == ("bert-3-10", 0, __version__)
    assert result["command"].endswith(" ".join(command))
    assert result["seconds"] > 0
    assert {"parameters", "macro", "micro", "sentences", "epochs", "learning_rate"} <= result["figures"].keys()
    rates = read("reproduced/table1-debug/rows/learning-rates-bert-3.json")["figures"]
    assert rates["chosen"] == float(min(rates["held_out_pppl"], key=rates["held_out_pppl"].get))
    assert len(rates["held_out_pppl"]) == 2
    assert row_of(out, "BERT")[1:3] == [f"{result['figures']['parameters']:,}", "1"]
    assert row_of(out, "BERT")[-1] == "441.42", "the paper's"
    assert "trained with matmul = medium: BERT, T-LSTM (m = 4)" in out
    assert row_of(out, "ALBERT")[1:4] == ["–", "–", "–"], "not done yet"
    counts = read("reproduced/table1-debug/rows/counts.json")["figures"]
    assert counts["neighbours"]["macro"] < counts["frequencies"]["macro"], "on sentences of a grammar"
    assert counts["frequencies"]["tokens"] == result["figures"]["tokens"], "the same test sentences"
    assert row_of(out, "counts of both neighbours")[-2] == f"{counts['neighbours']['macro']:.2f}"
    table = read("reproduced/table1-debug/table1.json")
    assert table["counts"] == counts
    assert table["rows"]["bert-3-10"]["macro"] == result["figures"]["macro"]
    assert table["rows"]["albert-12-10"] is None
    assert "| BERT |" in (folder / "table1.md").read_text()
    curves = ElementTree.parse(folder / "table1-curves.svg").getroot()
    assert len(curves.findall("{http://www.w3.org/2000/svg}polyline")) == 2

    model = folder / "runs" / "bert-3-10" / "model" / "model.safetensors"
    before = model.stat().st_mtime_ns
    code, again, err = run(*command)
    assert code == 0
    assert "bert-3-10 is done" in err
    assert again == out, "nothing is done twice"
    assert model.stat().st_mtime_ns == before
    code, _, err = run(*command, "--seed", "1")
    assert code == 2
    assert "bert-3-10 holds another run; it differs in seed: 0 there, 1 here" in err

    drawn = (folder / "table1-curves.svg").read_text()
    shutil.rmtree(folder / "runs")
    code, again, _ = run(*command, "--draw")
    assert (code, again) == (0, out), "a row that is done needs its run no more"
    assert (folder / "table1-curves.svg").read_text() == drawn


def test_a_system_in_all_parsing_tables(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["--scale", "debug", "--seeds", "2", "--only", "c-pcfg-wp"]
    folder = Path("reproduced/parsing-grammar-debug")
    with monkeypatch.context() as patched:
        interrupt_after(1, patched)
        code, out, err = run("table3", *command)
    assert (code, out) == (130, "")
    assert not (folder / "rows" / "c-pcfg-wp-seed0.json").exists()
    code, out, err = run("table3", *command)
    assert code == 0, err
    assert "resuming from" in err
    scores = [read(f"{folder}/rows/c-pcfg-wp-seed{seed}.json")["figures"] for seed in (0, 1)]
    f1 = [score["word"]["sentence_f1"] for score in scores]
    words = out[out.index("F1 over words") : out.index("F1 over word pieces")]
    row = row_of(words, "C-PCFG (WP)")
    assert row[2:6] == ["O(n³)", f"{max(f1):.2f}", f"{sum(f1) / 2:.2f}", "2"]
    least, most = sorted(score["updates"] for score in scores)
    assert " ".join(row[7:-2]) == (str(least) if least == most else f"{least} to {most}"), "updates"
    assert row_of(words, "C-PCFG (W)")[-2:] == ["60.10", "54.08"], "the paper's"
    assert row_of(words, "right trees")[-1] == "39.62"
    assert row_of(words, "R2D2 (WP)")[3:7] == ["–", "–", "0", "–"], "not done yet"
    pieces = out[out.index("F1 over word pieces") : out.index("F1 of other decodings")]
    assert row_of(pieces, "C-PCFG (WP)")[-1] == "49.76"
    trivial = read(f"{folder}/rows/right.json")["figures"]
    assert row_of(pieces, "right trees")[3] == f"{trivial['piece']['sentence_f1']:.2f}"
    assert trivial["piece"]["sentence_f1"] != trivial["word"]["sentence_f1"]
    other = [score["other_decodings"]["viterbi"]["word"] for score in scores]
    decoded = row_of(out[out.index("F1 of other decodings") :], "C-PCFG (WP)")
    assert decoded[2:] == ["viterbi", "over", "words", f"{max(other):.2f}", f"{sum(other) / 2:.2f}"]
    assert all(score["updates"] > 0 and score["threads"] > 0 for score in scores)

    code, out, err = run("table4", *command)
    assert code == 0
    assert "c-pcfg-wp-seed1 is done" in err, "the trainings serve all tables"
    recall = [score["piece"]["recall"]["exact"]["NP"] for score in scores]
    assert f"{sum(recall) / 2:.2f}" in row_of(out, "C-PCFG (WP)")
    code, out, err = run("table5", *command[:2], "--draw")
    assert code == 0
    both = [score["dependency"]["piece"]["sentence"] for score in scores]
    found = row_of(out[out.index("compatibility over word pieces") :], "C-PCFG (WP)")[2]
    assert found == f"{sum(both) / 2:.2f}", "of all seeds that are there, though four are usual"
    for name in ("table3", "table4", "table5"):
        assert read(f"{folder}/{name}.json")["systems"]["c-pcfg-wp"]
        assert (folder / f"{name}.md").read_text().startswith(f"# Table {name[-1]}")
    for _ in range(2):
        code, _, err = run("table3", *command, "--minutes", "1")
        assert code == 2
        assert "it differs in training.minutes: 0.02 there, 1.0 here" in err
        shutil.rmtree(folder / "runs", ignore_errors=True)  # a row remembers how it was trained
    assert str(folder.resolve()) not in (folder / "rows" / "c-pcfg-wp-seed0.json").read_text()


def test_two_commands_share_the_rows_of_a_table(run: Command) -> None:
    command = ["table3", "--scale", "debug", "--seeds", "1", "--only", "diora-w"]
    with claimed(Path("reproduced/parsing-grammar-debug/claims/diora-w-seed0")):
        code, out, err = run(*command)
    assert code == 0, err
    assert "diora-w-seed0 is being done by another process" in err
    assert row_of(out, "DIORA (W)")[3:7] == ["–", "–", "0", "–"]
    code, out, err = run(*command)
    assert code == 0, err
    assert row_of(out, "DIORA (W)")[5] == "1"


def test_all_treebanks_are_looked_at_before_one_is_trained_on(run: Command) -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(f"{name}/trees.txt").write_text("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n" * 20)
    command = ["table3", "--scale", "debug", "--gold", "one"]
    code, _, err = run(*command, "--gold", "absent")
    assert (code, err) == (2, "error: absent: no such file or folder\n")
    assert not Path("reproduced/parsing-one-debug/rows").exists()
    code, _, err = run(*command, "--gold", "one/trees.txt")
    assert code == 2
    assert "two of the treebanks have one name" in err


def test_systems_on_treebanks_with_more_text(run: Command) -> None:
    """A file of Chinese trees in Sinica's style, and a folder of English ones; each system once, interrupted or not."""
    chinese = "(S (NP (Nhaa 他)) (VP (VC2 看見) (NP (Nab 狗))))"
    Path("sinica").mkdir()
    Path("sinica/trees.txt").write_text(f"{chinese}\n" * 40, encoding="utf-8")
    Path("english").mkdir()
    english = "(S (NP (DT the) (NN {})) (VP (VBZ does) (RB n't) (VP (VB see) (NP (DT a) (NN cat)))) (. .))\n"
    for part, count in (("train", 40), ("dev", 6)):
        lines = "".join(english.format(word) for word in ("dog", "man") * count)
        Path(f"english/x.{part}.trees").write_text(lines, encoding="utf-8")
    Path("more.txt").write_text("The dog doesn't see a man.\n" * 20, encoding="utf-8")
    both = ["--scale", "debug", "--seeds", "1"]
    code, out, err = run("table3", *both, "--gold", "sinica", "--only", "bert-mask", "--only", "on-lstm-wp")
    assert code == 0, err
    assert "every system reads characters" in out
    words = out[out.index("F1 over words") : out.index("F1 over word pieces")]
    assert float(row_of(words, "BERT-MASK (WP)")[3]) >= 0
    systems = [word for name in ("c-pcfg-w", "diora-wp", "r2d2") for word in ("--only", name)]
    code, out, err = run("table3", *both, "--gold", "english", "--text", "more.txt", "--text-sentences", "20", *systems)
    assert code == 0, err
    folder = Path("reproduced/parsing-english-debug")
    assert (folder / "treebank" / "text.txt").read_text().splitlines()[0] == "The dog does n't see a man"
    vocabulary = read(f"{folder}/runs/c-pcfg-w-seed0/tokenizer/tokenizer.json")["model"]["vocab"]
    assert "n't" in vocabulary
    assert "'" not in vocabulary
    for name in ("c-pcfg-w", "diora-wp", "r2d2"):
        assert (folder / "rows" / f"{name}-seed0.json").exists()


def test_table2_is_marked_where_it_is_estimated(run: Command) -> None:
    code, out, err = run("table2", "--scale", "debug", "--batches", "2")
    assert code == 0, err
    assert "without pruning*, as the paper estimates" in out
    assert "2 batches" in out
    figures = read("reproduced/table2-debug/table2.json")
    hours = figures["hours"]
    assert hours["unpruned_as_paper"] == pytest.approx(hours["tiny_unpruned"] * 16 * 32 / 144)
    assert hours["pruned"] < hours["unpruned_by_compositions"]


def test_nothing_done_gives_an_empty_table(run: Command) -> None:
    code, out, _ = run("table1", "--scale", "debug", "--draw")
    assert code == 0
    assert row_of(out, "R2D2 (m = 8)")[-1] == "57.40"
    code, out, _ = run("table3", "--scale", "debug", "--draw")
    assert code == 0
    assert row_of(out, "left trees")[-1] == "8.15"


def test_cost_of_every_system(run: Command) -> None:
    code, out, err = run("cost", "--longest", "32", "--seconds", "20")
    assert code == 0, err
    assert row_of(out, "R2D2, no pruning")[-1] == "3.01", "(32³ - 32) / (8³ - 8) = 4 ** 3.01"
    systems = read("reproduced/cost/cost.json")["systems"]
    assert systems["DIORA"]["32"]["work"] == 5456
    assert systems["R2D2, m = 4"]["32"]["work"] < 16 * 32
    for name in ("work", "time"):
        picture = ElementTree.parse(f"reproduced/cost/cost-{name}.svg").getroot()
        assert len(picture.findall("{http://www.w3.org/2000/svg}polyline")) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table1", "--scale", "huge"], "--scale (huge) must be one of paper, small, debug"),
        (["table1", "--only", "gpt"], "--only (gpt) must be one of bert-3-10"),
        (["table1", "--only", "bert-3-10"], "wikitext-2/train.txt"),
        (["table2", "--batches", "0"], "--batches (0) must be at least 1"),
        (["table2"], "data/wikitext-2/train.txt: no such file"),
        (["table1", "--scale", "paper"], "data/wikitext-2/train.txt: no such file"),
        (["table3", "--dependencies", "x", "--gold", "a", "--gold", "b"], "--dependencies belongs to one treebank"),
        (["table3", "--seeds", "0"], "--seeds (0) must be at least 1"),
        (["table3", "--minutes", "0"], "--minutes (0.0) must be above 0"),
        (["table3", "--gold", "absent"], "absent: no such file or folder"),
        (["table3", "--prepare", "ptb"], "--prepare ('ptb') must be one of kim2019"),
        (["table3", "--text", "absent"], "absent: no such file or folder"),
        (["table3", "--text", ".", "--text-sentences", "0"], "--text-sentences (0) must be at least 1"),
        (["table3", "--scale", "debug", "--only", "gpt"], "--only (gpt) must be one of bert-mask"),
        (["cost", "--longest", "8"], "--longest (8) must be at least 16"),
        (["cost", "--seconds", "0"], "--seconds (0) must be above 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line(run: Command, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
