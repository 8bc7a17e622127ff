"""An addition is whole or these tests fail: every atom, SP-regularizer and set is known in every room that needs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spdsl
from spdsl.compiler.atoms import PRIMITIVES, SCALAR_ATOMS
from spdsl.compiler.builtin import PARAMETERS, REGULARIZERS
from spdsl.data import bind
from spdsl.language.signatures import ATOMS, KERNELS, SELF_PACED, SETS, Role
from spdsl.language.types import Curvature
from spdsl.problem.kernels import KERNELS as PROBLEM_KERNELS
from spdsl.reference import atoms as cvxpy_atoms
from spdsl.reference import scalar as scalar_atoms

REFERENCE = (Path(__file__).resolve().parent.parent / "grammars" / "README.md").read_text()
ELEMENTWISE = [name for name, atom in ATOMS.items() if atom.role is Role.ELEMENTWISE]
CONVEX = [name for name in ELEMENTWISE if ATOMS[name].curvature is Curvature.CONVEX and not ATOMS[name].variadic]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_atom_is_known_to_the_compiler_and_to_both_references(name):
    assert name in SCALAR_ATOMS or name in PRIMITIVES, "spdsl/compiler/atoms.py"
    assert name in cvxpy_atoms.RULES, "spdsl/reference/atoms.py"
    assert name in scalar_atoms.RULES, "spdsl/reference/scalar.py"


@pytest.mark.parametrize("name", sorted({*ATOMS, *KERNELS, *SELF_PACED, *SETS}))
def test_every_word_of_the_language_stands_in_its_reference(name):
    assert f"`{name}" in REFERENCE, "grammars/README.md"


@pytest.mark.parametrize("name", CONVEX)
def test_an_atom_as_a_loss_has_one_value_in_the_kernel_the_reference_and_cvxpy(name):
    import cvxpy as cp

    text = f"data\n  X : matrix(n, d)\nvariable\n  w : vector(d)\nminimize\n  loss  {name}(X @ w)\n"
    z = np.array([-3.0, -1.0, -0.4, 0.0, 0.05, 0.7, 1.0, 2.5])
    bound = bind(spdsl.parse(text).problem, arrays={"X": z[:, None]})
    function = bound.problem.loss.function
    ours = bound.losses(np.ones(1))
    theta = bound.parameters_of(function)
    np.testing.assert_allclose(scalar_atoms.value(function, (z,), theta), ours, rtol=1e-12, atol=1e-14)
    variable = cp.Variable(z.size, value=z)
    translated = cvxpy_atoms.translate(function, [variable], theta)
    assert translated.is_convex()
    np.testing.assert_allclose(translated.value, ours, rtol=1e-12, atol=1e-14)


def test_self_paced_regularizers_and_kernels_have_the_same_names_and_parameters_everywhere():
    assert set(REGULARIZERS) == set(SELF_PACED)
    for name, signature in SELF_PACED.items():
        assert tuple(parameter.name for parameter in signature.parameters) == PARAMETERS.get(name, ())
    assert {name: tuple(parameter.name for parameter in item.parameters) for name, item in KERNELS.items()} == {
        name: tuple(names) for name, names in PROBLEM_KERNELS.items()
    }
