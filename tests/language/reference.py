"""The generated tables of grammars/README.md; run as a module to write them anew.

    python -m tests.language.reference            # says whether the page is up to date
    python -m tests.language.reference --write

In: the signatures and the catalogue of codes. Out: the tables between the `<!-- name: ... -->` markers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from spdsl.codes import CODES
from spdsl.language.arguments import usage
from spdsl.language.signatures import ATOMS, KERNELS, SELF_PACED, SETS, Monotone, Parameter, Signature

README = Path(__file__).resolve().parents[2] / "grammars" / "README.md"


def atoms() -> str:
    """One row an atom."""
    rows = ["| atom | value | result | curvature | monotone |", "|---|---|---|---|---|"]
    for atom in ATOMS.values():
        form = f"{atom.name}(x, y, ...)" if atom.variadic else usage(atom.name, atom.parameters)
        monotone = "" if atom.monotone is Monotone.NEITHER else atom.monotone.value
        curvature = "" if atom.name == "support" else atom.curvature.value
        if atom.name == "mahalanobis":
            curvature = "affine in M"
        rows.append(f"| `{form}` | {_cell(atom.formula)} | {atom.role.value} | {curvature} | {monotone} |")
    return "\n".join(rows)


def signatures(table: dict[str, Signature], first: tuple[Parameter, ...], value: str) -> str:
    """One row a signature."""
    rows = [f"| form | {value} |", "|---|---|"]
    for signature in table.values():
        form = usage(signature.name, (*first, *signature.parameters))
        rows.append(f"| `{form}` | {_cell(signature.formula)} |")
    return "\n".join(rows)


def codes() -> str:
    """One row a code."""
    return "\n".join(
        ["| code | meaning |", "|---|---|", *(f"| {code} | {_cell(text)} |" for code, text in sorted(CODES.items()))]
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*") if "`" not in text else text.replace("|", "\\|")


def updated(page: str) -> str:
    """The page with its tables as they should be."""
    tables = {
        "atoms": atoms(),
        "self_paced": signatures(SELF_PACED, (Parameter("lambda"),), "f(v, lambda)"),
        "sets": signatures(SETS, (), "the coordinates that may be non-zero"),
        "kernels": signatures(KERNELS, (), "k(x, z)"),
        "codes": codes(),
    }
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)", flags=re.DOTALL)
        page, count = pattern.subn(lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", page)
        assert count == 1, f"grammars/README.md has no place for the table {name}"
    return page


def main() -> int:
    """Compare the page, or write it."""
    page = README.read_text(encoding="utf-8")
    right = updated(page)
    if "--write" in sys.argv[1:]:
        README.write_text(right, encoding="utf-8")
    elif page != right:
        print("grammars/README.md is out of date: run `python -m tests.language.reference --write`")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
