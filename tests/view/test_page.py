"""The page of a result: whole, self-contained, readable without script or network, in light and dark."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import hand_built
import numpy as np
import pytest

from spdsl.diagnostics import UsageError
from spdsl.view.page import page

VOID = {"meta", "img", "source", "br", "link", "input"}


class Balanced(HTMLParser):
    """Every element that opens closes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text():
    return page(hand_built.path())


def test_every_element_is_closed(text):
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []


def test_nothing_is_fetched_from_anywhere(text):
    bare = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", bare)
    for picture in re.findall(r"base64,([A-Za-z0-9+/=]+)", text):
        svg = base64.b64decode(picture).decode()
        assert not re.search(r"(?:href|src)\s*=\s*[\"']https?:", svg)


def test_there_is_a_picture_for_light_and_one_for_dark(text):
    assert "prefers-color-scheme: dark" in text
    light, dark = re.findall(r'base64,([A-Za-z0-9+/=]+)"', text)
    assert light != dark


def test_the_facts_and_every_critical_point_with_its_cause_are_there(text):
    assert "turning points <b>2</b>" in text
    assert "jumps <b>1</b>" in text
    for cause in ("sample 3 enters E", "sample 5 enters E", "w[1] leaves zero"):
        assert cause in text


def test_what_the_pointer_shows_are_exact_solutions(text):
    hover = json.loads(re.search(r'id="hover">(.*?)</script>', text, re.DOTALL)[1])
    assert 0 < hover["left"] < hover["right"] < 1
    age, words = hover["rows"][len(hover["rows"]) // 4]
    value = age**2 + (10 if age >= 2 else 0)
    assert f"b = {value:.4g}" in words
    assert hover["rows"][0][0] == hover["low"]


def test_names_with_markup_are_shown_as_they_are(monkeypatch):
    drawn = ("data:,", {"rows": [[1.0, "w[<script>alert(1)</script>] = 1"]]}, None)
    monkeypatch.setattr("spdsl.view.page._picture", lambda *rest: drawn)
    bound = hand_built.bound()
    bound = replace(bound, feature_names={"X": ("<script>alert(1)</script>", "a&b")})
    text = page(hand_built.path(bound))
    assert "<script>alert(1)" not in text


def test_the_same_result_gives_the_same_page(text):
    assert page(hand_built.path()) == text


def test_a_solution_and_a_path_without_data_have_pages_too():
    path = hand_built.path()
    assert "objective" in page(path(3.0))
    bare = replace(path, branch=None, bound=replace(path.bound, data={}))
    assert 'id="hover"' not in page(bare)


def test_plot_with_an_html_name_writes_the_page(tmp_path):
    figure = hand_built.path().plot(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text().startswith("<!doctype html>")
    assert len(figure.axes) >= 4
    with pytest.raises(UsageError, match="can't write"):
        hand_built.path()(3.0).plot(tmp_path / "nowhere" / "p.html")


def test_a_path_of_a_single_age_has_a_page():
    path = hand_built.path()
    one = replace(
        path, ages=path.ages[:1], nodes=path.nodes[:1], kkt_residuals=np.array([0.0]), stored_critical_points=()
    )
    assert "No critical points." in page(one)
