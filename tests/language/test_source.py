"""Files that are no text of a model are refused in words, and any kind of line end is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from spdsl.diagnostics import ModelError
from spdsl.language import load_source, parse
from spdsl.language.source import MAXIMUM_BYTES
from tests.language.models import SELF_PACED_LASSO


def _refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_source(path)
    return str(caught.value)


def _written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "model.spl"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path, end: bytes, mark: bytes) -> None:
    path = _written(tmp_path, mark + SELF_PACED_LASSO.encode().replace(b"\n", end))
    assert parse(load_source(path)) == parse(SELF_PACED_LASSO)


@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["CRLF", "CR"])
def test_places_are_counted_in_lines_whatever_ends_them(tmp_path: Path, end: bytes) -> None:
    path = _written(tmp_path, SELF_PACED_LASSO.replace("norm1(w)", "norm1(w").encode().replace(b"\n", end))
    with pytest.raises(ModelError, match=r"model\.spl:16:29"):
        parse(load_source(path))


def test_text_with_carriage_returns_can_be_parsed_directly() -> None:
    assert parse("\ufeff" + SELF_PACED_LASSO.replace("\n", "\r\n")) == parse(SELF_PACED_LASSO)


def test_a_missing_file_names_a_similar_one(tmp_path: Path) -> None:
    (tmp_path / "lasso.spl").write_text(SELF_PACED_LASSO)
    text = _refusal(tmp_path / "laso.spl")
    assert "SPL100" in text
    assert f"did you mean `{tmp_path / 'lasso.spl'}`?" in text
    assert "did you mean" in _refusal(tmp_path / "lasso")


def test_a_missing_folder_is_no_crash(tmp_path: Path) -> None:
    assert "there is no file" in _refusal(tmp_path / "nowhere" / "lasso.spl")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in _refusal(tmp_path)


def test_a_name_with_a_nul_byte_is_refused(tmp_path: Path) -> None:
    assert "SPL100" in _refusal(tmp_path / "a\0b.spl")


def test_a_file_of_ten_megabytes_is_refused(tmp_path: Path) -> None:
    text = _refusal(_written(tmp_path, b"# data\n" * 1_500_000))
    assert "SPL103" in text
    assert "10.5 MB" in text


def test_a_text_of_ten_megabytes_is_refused() -> None:
    with pytest.raises(ModelError, match="SPL103"):
        parse("#" * 10_000_000)


def test_a_text_at_the_limit_is_read(tmp_path: Path) -> None:
    comment = "#" * (MAXIMUM_BYTES - len(SELF_PACED_LASSO) - 1) + "\n"
    assert parse(load_source(_written(tmp_path, (comment + SELF_PACED_LASSO).encode()))) == parse(SELF_PACED_LASSO)


def test_the_place_of_a_byte_that_is_no_utf8_is_given(tmp_path: Path) -> None:
    assert "model.spl:2:5" in _refusal(_written(tmp_path, b"data\n  X \xff\n"))


def test_the_complaint_about_a_name_uses_the_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _written(tmp_path, b"data\n  X\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"--> model\.spl:2:3"):
        parse(load_source("model.spl"))
