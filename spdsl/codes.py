"""The catalogue of diagnostic codes: one code a complaint, with the sentence that grammars/README.md shows for it.

1xx text and syntax, 2xx names, types and shapes, 3xx convexity, losses and derivations, 4xx data, 5xx back ends and
options, 6xx the certificate, 7xx command line and files, 9xx bugs in spdsl.
"""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    # --- 1xx text and syntax (spdsl/language) ---
    "SPL100": "the model file can't be read",
    "SPL101": "the file is binary, not the text of a model",
    "SPL102": "the file is not UTF-8 text",
    "SPL103": "the file is too large for a model",
    "SPL104": "the model is empty",
    "SPL105": "a character that the language doesn't have, or that only looks like one it has",
    "SPL106": "a number is malformed",
    "SPL107": "a sign of another language",
    "SPL108": "a text has no closing quote",
    "SPL109": "a bracket is never closed",
    "SPL110": "a bracket closes nothing, or closes a bracket of another shape",
    "SPL111": "a line starts with an operator",
    "SPL112": "an operator is missing between two operands",
    "SPL113": "a statement ends too early",
    "SPL114": "something can't stand where it stands",
    "SPL115": "a word of the language is used as a name",
    "SPL116": "a section or a statement starts with an unknown word",
    "SPL117": "a statement stands before the first section",
    "SPL118": "a statement stands in the wrong section",
    "SPL119": "`=`, `:` and comparisons are mixed up",
    "SPL120": "expressions are nested too deeply",
    "SPL121": "a comparison stands where none can",
    "SPL122": "the language has no indexing and no lists",
    "SPL123": "`piecewise` is malformed",
    "SPL124": "a section or statement that every model needs is missing",
    "SPL125": "something that may be said once is said twice",
    # --- 2xx names, types and shapes (spdsl/language) ---
    "SPL203": "`self_paced` needs one loss per sample, and this loss is a scalar",
    # --- 3xx convexity, losses and derivations (spdsl/language, spdsl/compiler) ---
    # --- 4xx data (spdsl/data) ---
    "SPL401": "a data file can't be opened",
    "SPL402": "a data file's extension is unknown",
    "SPL403": "a data file is empty",
    "SPL404": "a data file has a header but no rows",
    "SPL405": "rows have different lengths",
    "SPL406": "a text file isn't in UTF-8",
    "SPL407": "two columns have the same name",
    "SPL408": "there is text where a number is needed",
    "SPL409": "a value is missing",
    "SPL410": "a value is infinite or too large for a float",
    "SPL411": "an array has the wrong number of axes or the wrong shape",
    "SPL412": "two data disagree on a size",
    "SPL413": "nothing is bound to a name that the model declares",
    "SPL414": "a value is given for a name that the model doesn't declare",
    "SPL415": "a name is bound twice",
    "SPL416": "it isn't clear which columns or which array a name means",
    "SPL417": "there is no column or array of that name",
    "SPL418": "an array isn't of real numbers",
    "SPL419": "labels need exactly two classes",
    "SPL420": "an edge of a graph is wrong",
    "SPL421": "the nodes of a graph don't match the columns that they belong to",
    "SPL422": "a package that is needed to read a format isn't installed",
    "SPL423": "a line of a LIBSVM file is malformed",
    "SPL424": "an array file is damaged or holds Python objects",
    "SPL425": "a parameter's value is missing or of the wrong kind",
    "SPL426": "a size is fixed by no data",
    "SPL427": "an array has no rows or no columns",
    "SPL428": "a matrix that is declared symmetric isn't",
    "SPL429": "a sparse matrix is malformed",
    "SPL430": "a datum can't be standardized",
    "SPL431": "a `NAME=SOURCE` can't be read",
    # --- 5xx back ends and options (solvers) ---
    "SPL501": "there is no back end of that name",
    "SPL502": "the back end that the model names can't solve it",
    "SPL503": "no back end can solve this mix of parts",
    "SPL504": "a back end has no option of that name",
    "SPL505": "an option's value is of the wrong kind or out of range",
    "SPL506": "the back end can't solve the model with these data",
    "SPL507": "a back end needs a package that is not installed",
    "SPL560": "a COMID step has no finite minimizer (Burg) or leaves floating point (von Neumann)",
    "SPL561": "COMID knows no divergence, loss or schedule of that name, or p is out of range",
    "SPL562": "a penalty's coefficient is negative or not finite",
    "SPL563": "the pairs given to a metric learner are malformed (shape, labels, values)",
    "SPL564": "a metric learner would need more memory than allowed",
    # --- 6xx the certificate (spdsl/reference) ---
    # --- 7xx command line and files (spdsl/cli.py, spdsl/solution, spdsl/view) ---
    "SPL701": "an age lies outside the path",
    "SPL702": "a path was loaded without its data",
    "SPL703": "a file is not a result of spdsl, or is damaged",
    "SPL704": "a result file was written by a newer spdsl",
    "SPL705": "a file can't be read or written",
    "SPL706": "a keyword of a call names nothing, or two things at once",
    "SPL707": "data that can't be standardized",
    "SPL708": "the age can't be chosen by validation data",
    "SPL709": "a command was given the wrong kind of result or option",
    "SPL710": "a file is already there",
    "SPL711": "a package that is needed for this is not installed",
    # --- 9xx bugs ---
    "SPL900": "this is a bug in spdsl",
}
