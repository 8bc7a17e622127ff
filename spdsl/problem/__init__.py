"""The canonical form of a learning problem: the only thing that back ends see.

In: what the compiler lowered from a model file. Out: `Problem` (symbolic sizes, no data) and `BoundProblem` (with
arrays).
"""

from __future__ import annotations

from spdsl.problem.bound import BoundProblem, LabelMapping, Layout
from spdsl.problem.constraints import (
    AffineConstraint,
    BallConstraint,
    Constraint,
    SemidefiniteConstraint,
    SupportConstraint,
)
from spdsl.problem.expressions import Call, Expression, Name, Number, evaluate
from spdsl.problem.functions import Kink, Piece, PieceKernel, ScalarFunction
from spdsl.problem.predictors import Predictor, Term
from spdsl.problem.problem import (
    Age,
    DataDeclaration,
    Loss,
    ParameterDeclaration,
    Problem,
    SolveRequest,
    VariableDeclaration,
)
from spdsl.problem.regularizers import (
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Norm,
    Regularizer,
    Separable,
    TraceNorm,
)
from spdsl.problem.requirements import Range, Requirement, require_met, unmet
from spdsl.problem.scaling import Scaling, standardize
from spdsl.problem.self_paced import AxiomVerdict, SelfPaced, WeightKernel

__all__ = [
    "AffineConstraint",
    "Age",
    "AxiomVerdict",
    "BallConstraint",
    "BoundProblem",
    "Call",
    "Constraint",
    "DataDeclaration",
    "Expression",
    "GroupNorm",
    "KernelNorm",
    "Kink",
    "LabelMapping",
    "Layout",
    "LinearTerm",
    "Loss",
    "Name",
    "Norm",
    "Number",
    "ParameterDeclaration",
    "Piece",
    "PieceKernel",
    "Predictor",
    "Problem",
    "Range",
    "Regularizer",
    "Requirement",
    "ScalarFunction",
    "Scaling",
    "SelfPaced",
    "SemidefiniteConstraint",
    "Separable",
    "SolveRequest",
    "SupportConstraint",
    "Term",
    "TraceNorm",
    "VariableDeclaration",
    "WeightKernel",
    "evaluate",
    "require_met",
    "standardize",
    "unmet",
]
