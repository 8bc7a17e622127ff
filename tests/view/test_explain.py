"""`explain`: everything derived is there in each format; LaTeX is balanced and knows its commands; pages are whole."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

import spdsl
from spdsl.diagnostics import UsageError
from spdsl.problem import SolveRequest
from spdsl.solvers import dispatch
from spdsl.view.latex import escaped

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ["lasso", "svm", "graph", "online", "metric"]

MIX = """
data
  X : matrix(n, d)
  y : labels(n)
  c_1 : vector(n)
variable
  w : vector(d)
  b : scalar
age lambda = 0.7
minimize
  loss max(0.3 * (X @ w - c_1), -0.7 * (X @ w - c_1)) + 0 * b
  regularizer 0.1 * norm2(w) + huber(b, 1)
  self_paced log(lambda, 0.5)
subject to
  w >= -1
  sum(w) == 1
"""


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    monkeypatch.setattr(dispatch, "BACKENDS", {"fake": "hand_built:Fake", "fakepath": "hand_built:FakePath"})


def model(name):
    if name == "mix":
        return spdsl.parse(MIX, "mix_of_100%_&_more.spl")
    loaded = spdsl.load(EXAMPLES / f"{name}.spl")
    return spdsl.Model(replace(loaded.problem, request=None))


@pytest.fixture(scope="module", params=[*NAMES, "mix"])
def explained(request):
    patch = pytest.MonkeyPatch()
    patch.setattr(dispatch, "BACKENDS", {"fake": "hand_built:Fake", "fakepath": "hand_built:FakePath"})
    yield model(request.param).explain()
    patch.undo()


def test_the_lasso_shows_its_selection_functions_weights_axioms_and_conditions():
    text = str(model("lasso").explain())
    for words in ("z²/(2·n)", "norm1(w)", "λ·(v²/2 − v)", "1 − l/λ", "f is convex in v", "proved", "KKT conditions"):
        assert words in text, words
    assert "the slope jumps from -1 to 1" in text


def test_a_users_own_regularizer_shows_its_partition_in_all_formats():
    explanation = model("svm").explain()
    assert "κ²/(κ/λ + 1)²" in explanation.text()
    assert r"\frac{\kappa^{2}}" in explanation.latex()
    assert "<mi>κ</mi>" in explanation.html()


def test_the_back_end_is_told_and_the_other_ones_with_their_reasons(monkeypatch):
    class Unable:
        def __new__(cls):
            import hand_built

            return hand_built.Fake(refusals=("it needs a smooth loss",))

    import hand_built

    monkeypatch.setattr(hand_built, "Unable", Unable, raising=False)
    monkeypatch.setattr(dispatch, "BACKENDS", {"picky": "hand_built:Unable", "fake": "hand_built:Fake"})
    text = str(model("lasso").explain())
    assert "fake, the first that can solve it: counts steps" in text
    assert re.search(r"picky +it needs a smooth loss", text)


def test_a_back_end_that_cannot_solve_the_model_and_an_unknown_one_are_told_and_do_not_crash():
    problem = replace(model("lasso").problem, request=SolveRequest("nothing", {}))
    assert "there is no back end called `nothing`" in str(spdsl.Model(problem).explain())


def test_options_of_the_solve_statement_are_shown_as_written():
    request = SolveRequest("fake", {"steps": 3, "mode": "fancy", "start": ("subset", (0.5,), {"seed": 1})})
    text = str(spdsl.Model(replace(model("lasso").problem, request=request)).explain())
    assert "With steps = 3, mode = fancy, start = subset(0.5, seed = 1)" in text


def test_an_unknown_format_is_refused():
    with pytest.raises(UsageError, match="one of: text, latex, html"):
        model("lasso").explain("pdf")


# --- the three formats ---------------------------------------------------------------------------------------------


def test_text_fits_its_width_and_a_notebook_shows_the_page(explained):
    assert max(map(len, explained.text(120).splitlines())) <= 120
    assert "<table>" in explained._repr_html_()


def test_every_formula_of_a_page_is_well_formed_and_nothing_is_fetched(explained):
    page = explained.html()
    formulas = re.findall(r"<math.*?</math>", page, re.DOTALL)
    assert len(formulas) > 5
    for formula in formulas:
        assert "\\" not in "".join(ElementTree.fromstring(formula).itertext()), formula
    bare = page.replace("http://www.w3.org/1998/Math/MathML", "")
    assert "http" not in bare
    assert "prefers-color-scheme: dark" in page


def test_braces_and_environments_of_the_latex_are_balanced(explained):
    text = explained.latex()
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))
    opened = re.findall(r"\\begin\{(\w+\*?)\}", text)
    closed = re.findall(r"\\end\{(\w+\*?)\}", text)
    assert sorted(opened) == sorted(closed)
    assert text.isascii(), sorted({character for character in text if not character.isascii()})


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed (apt install texlive-latex-base)"
)
def test_the_latex_compiles_without_an_error(explained, tmp_path):
    packages = r"\usepackage{amsmath,amssymb,booktabs}"
    (tmp_path / "e.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}{explained.latex()}\end{{document}}"
    )
    run = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "e.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-1500:]


def test_words_with_signs_that_latex_reads_as_commands_are_made_harmless():
    assert escaped("100% of w_1 & `a_b` {x} #2 ~ ^ \\") == (
        r"100\% of w\_1 \& \texttt{a\_b} \{x\} \#2 \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
