"""The state that Python and C share, and libraries that do not fit it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from r2d2.native import chart

SOURCE = Path(chart.__file__).with_name("chart.c").read_text(encoding="utf-8")


def test_the_state_has_the_fields_of_the_struct_in_its_order() -> None:
    body = re.search(r"struct chart \{(.*?)\n\};", SOURCE, re.DOTALL)
    assert body is not None
    declarations = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL).split(";")
    names = [name for declaration in declarations for name in re.findall(r"(\w+)\s*(?:,|$)", declaration.strip())]
    assert names == [name for name, _ in chart.ChartState._fields_]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(
    "source",
    ["int something_else(void) { return 0; }", "long chart_size(void) { return 8; }"],
    ids=["without a chart", "with another chart"],
)
def test_a_library_made_from_other_sources_is_left_alone(source: str, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "other.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / "other.so"], check=True)
    monkeypatch.setattr(chart, "library", ctypes.CDLL(str(tmp_path / "other.so")))
    assert chart._functions() is None
