"""`r2d2 treebank` as a user runs it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from cli.conftest import Command
from evaluation.samples import GOLD


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Command:
    (tmp_path / "wsj" / "23").mkdir(parents=True)
    (tmp_path / "wsj" / "23" / "wsj_2300.mrg").write_text(GOLD)
    (tmp_path / "wsj" / "24").mkdir()
    (tmp_path / "wsj" / "24" / "wsj_2400.mrg").write_text("(S (NP (CD 1,000) (NNS Dogs)) (VP (VBP bark)) (. .))\n")
    (tmp_path / "ctb.fid").write_bytes(
        "<DOC>\n(IP (NN 狗) (VV 叫) (PU 。))\n(FRAG (PU ！))\n</DOC>\n".encode("gb18030")
    )
    monkeypatch.chdir(tmp_path)

    return partial(command, "treebank")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "(S (NP (CD 1,000) (NNS Dogs)) (VP (VBP bark)))\n"),
        (["--lower", "--numbers"], "(S (NP (CD N) (NNS dogs)) (VP (VBP bark)))\n"),
        (["--words"], "1,000 Dogs bark\n"),
        (["--keep-punctuation", "--words"], "1,000 Dogs bark .\n"),
        (["--prepare", "none"], "(S (NP (CD 1,000) (NNS Dogs)) (VP (VBP bark)) (. .))\n"),
    ],
)
def test_prepare(run: Command, tmp_path: Path, arguments: list[str], expected: str) -> None:
    code, out, _ = run("prepare", "wsj", "out.txt", "--sections", "24", *arguments)
    assert code == 0
    assert "wrote out.txt: 1 sentences" in out
    assert (tmp_path / "out.txt").read_text() == expected


def test_prepare_chinese(run: Command, tmp_path: Path) -> None:
    code, _, err = run("prepare", "ctb.fid", "out.txt")
    assert (code, err.startswith("error: ctb.fid:3: preparation ctb removes every leaf")) == (2, True)
    assert not (tmp_path / "out.txt").exists()
    code, out, _ = run("prepare", "ctb.fid", "out.txt", "--skip-empty")
    assert (code, (tmp_path / "out.txt").read_text(encoding="utf-8")) == (0, "(IP (NN 狗) (VV 叫))\n")
    assert "1 of which the preparation leaves nothing" in out


def test_stats(run: Command) -> None:
    code, out, _ = run("stats", "wsj/23", "--json")
    assert code == 0
    figures = json.loads(out)
    assert (figures["sentences"], figures["words"], figures["too_short"]) == (4, 12, 1)
    assert (figures["mean_length"], figures["longest"], figures["deepest"]) == (3, 4, 3)
    assert figures["labels"] == {"S": 3, "NP": 2, "VP": 2}
    assert figures["preparation"] == "kim2019"
    assert figures["baselines"]["balanced"]["sentence_f1"] == pytest.approx(50, abs=1e-5)
    assert figures["upper_bound"] == pytest.approx(50, abs=1e-5)
    code, out, _ = run("stats", "wsj/23")
    assert "left out: 1 too short, 0 too long, 0 of which the preparation leaves nothing" in out
    assert "  mean length    3.00\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "absent", "out.txt"], "absent: no such file"),
        (["prepare", "wsj", "no/out.txt"], "no/out.txt: the folder no does not exist"),
        (["prepare", "wsj", "out.txt", "--prepare", "sinica2"], "preparation ('sinica2') must be one of"),
        (["stats", "wsj", "--sections", "x"], "sections ('x') must be numbers"),
        (["stats", "wsj", "--min-length", "9"], "no tree is left"),
    ],
)
def test_wrong_input_is_one_line(run: Command, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
