"""Parses a model: lexer, layout, then the LALR tables statement by statement.

In: text or a `Source`. Out: a `Model` tree, or a `ModelError` with every syntax error found, at most twenty. Nothing
here recurses, so a text of any depth is parsed or refused in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spdsl.diagnostics import Diagnostic, Source, Span
from spdsl.language.actions import DEEPENING, Actions, Run
from spdsl.language.collector import collector_paused
from spdsl.language.complaints import Complaints
from spdsl.language.layout import Block, Line, blocks
from spdsl.language.lexer import Token, lex
from spdsl.language.misspelt import explain_stray, misspelt_word
from spdsl.language.source import normalize
from spdsl.language.tables import END, START_SYMBOLS, Tables, tables
from spdsl.language.tree import MAXIMUM_DEPTH, Model, Section, Statement

__all__ = ["parse"]


def parse(text: str | Source, name: str = "<model>") -> Model:
    """Parse a model.

    Parameters
    ----------
    text : str or Source
        The text; a `Source` brings its own name.
    name : str
        What to call the text in diagnostics.

    Raises
    ------
    ModelError
        With all syntax errors, in the order of the file.
    """
    source = text if isinstance(text, Source) else normalize(text, name)
    with collector_paused(len(source.text)):
        return _parse(source)


def _parse(source: Source) -> Model:
    complaints = Complaints()
    lexed = lex(source, complaints)
    found = blocks(source, lexed.tokens, complaints)
    if len(found) == 1 and not found[0].lines and not complaints:
        help_ = "`spdsl new lasso.spl --from lasso` writes a model to start from"
        complaints.add(Diagnostic("SPL104", "the model is empty", place=source.name, help=(help_,)))
    sections = tuple(_sections(source, found, complaints))
    complaints.raise_if_any()
    return Model(sections, comments=tuple(lexed.comments), source=source)


def _sections(source: Source, found: list[Block], complaints: Complaints) -> list[Section]:
    driver = _Driver(source, complaints)
    sections: list[Section] = []
    for position, block in enumerate(found):
        keyword, silent = block.keyword, False
        statements: list[Statement] = []
        for line in block.lines:
            if complaints.enough:
                break
            meant = misspelt_word(source, line, keyword, complaints)
            if meant is not None:
                # Read on in the section that was meant; what belongs to an unknown one is passed over.
                keyword, silent, line = meant.section, meant.section is None, meant.rest
                if not line.tokens:
                    continue
            if keyword is None:
                if not silent and not line.broken:
                    explain_stray(source, line, complaints)
                silent = True
                continue
            statement = driver.statement(line, keyword)
            if statement is not None:
                statements.append(statement)
        if block.token is not None and block.keyword is not None:
            keyword_span = Span(source, block.token.start, block.token.end)
            span = keyword_span.to(statements[-1].span) if statements else keyword_span
            if not block.lines and not _opens_with_sign(found[position + 1 : position + 2]):
                message = f"the section `{block.keyword}` is empty"
                complaints.error("SPL113", message, keyword_span, "", "give it a statement, or delete it")
            sections.append(Section(block.keyword, tuple(statements), keyword_span=keyword_span, span=span))
    return sections


def _opens_with_sign(blocks: list[Block]) -> bool:
    """Whether the next section word is meant as a name, as in `parameter age = 2`: then the section isn't empty."""
    return bool(blocks) and bool(blocks[0].lines) and blocks[0].lines[0].tokens[0].kind in ("COLON", "EQUAL")


class _Driver:
    """The shift-reduce loop over the tables."""

    def __init__(self, source: Source, complaints: Complaints) -> None:
        self.source = source
        self.complaints = complaints
        self.tables: Tables = tables()
        self.passed: dict[tuple[int, int, str], int] = {}
        actions = Actions(source, complaints)
        # By rule: origin, length, the action or None, whether its node is one level deeper, and only if it is one.
        self.rules: list[tuple[str, int, Callable[..., Any] | None, bool, bool]] = [
            (origin, length, getattr(actions, action) if action else None, action in DEEPENING, action == "chain")
            for origin, length, action in self.tables.rules
        ]

    def statement(self, line: Line, keyword: str) -> Statement | None:
        """Parse one statement; None after a complaint."""
        if line.broken:
            return None
        symbol = START_SYMBOLS[keyword]
        states, rules = self.tables.states, self.rules
        start_state, end_state = self.tables.starts[symbol], self.tables.ends[symbol]
        stack = [start_state]
        values: list[Any] = []
        starts: list[int] = []
        ends: list[int] = []
        depths: list[int] = []
        last = line.tokens[-1]
        tokens = [*line.tokens, Token(END, "", last.end, last.end)]
        for index, token in enumerate(tokens):
            kind = token.kind
            while True:
                if kind == END and stack[-1] == end_state:
                    return values[0]  # type: ignore[no-any-return]
                action = states[stack[-1]].get(kind)
                if action is None:
                    self._explain(keyword, line, index, stack)
                    return None
                if action >= 0:
                    stack.append(action)
                    values.append(token)
                    starts.append(token.start)
                    ends.append(token.end)
                    depths.append(0)
                    break
                origin, length, make, deepens, is_chain = rules[-1 - action]
                if length == 1:
                    # Most reductions pass one child on: no need to touch the offsets.
                    if make is None:
                        stack[-1] = self._pass_on(stack[-2], stack[-1], kind)
                        continue
                    stack[-1] = states[stack[-2]][origin]
                    if is_chain and type(values[-1]) is Run:
                        depths[-1] += 1
                    values[-1] = make(values[-1:], starts[-1], ends[-1])
                else:
                    child = values[-length:]
                    start, end = starts[-length], ends[-1]
                    depth = max(depths[-length:]) + deepens
                    assert make is not None, "only a single child is passed on"
                    del stack[-length:], values[-length:], starts[-length:], ends[-length:], depths[-length:]
                    values.append(make(child, start, end))
                    starts.append(start)
                    ends.append(end)
                    depths.append(depth)
                    stack.append(states[stack[-1]][origin])
                if depths[-1] > MAXIMUM_DEPTH:
                    self._too_deep(starts[-1], ends[-1])
                    return None
        raise AssertionError("the end of a statement is either accepted or refused")

    def _explain(self, keyword: str, line: Line, index: int, stack: list[int]) -> None:
        from spdsl.language.failures import Failure
        from spdsl.language.syntax_errors import explain

        explain(Failure(self.source, keyword, line, index, self._accepts(stack)), self.complaints)

    def _pass_on(self, below: int, top: int, kind: str) -> int:
        """The state after all the reductions that only pass one child on, before a token of a kind."""
        key = (below, top, kind)
        state = self.passed.get(key)
        if state is None:
            state = top
            while True:
                action = self.tables.states[state].get(kind)
                if action is None or action >= 0:
                    break
                origin, length, make = self.rules[-1 - action][:3]
                if length != 1 or make is not None:
                    break
                state = self.tables.states[below][origin]
            self.passed[key] = state
        return state

    def _accepts(self, stack: list[int]) -> frozenset[str]:
        """The kinds of token that could stand here."""
        return frozenset(kind for kind in self.tables.states[stack[-1]] if self._leads_on(stack, kind))

    def _leads_on(self, stack: list[int], kind: str) -> bool:
        if kind != END and not kind.isupper():
            return False
        states, trial = self.tables.states, list(stack)
        while True:
            action = states[trial[-1]].get(kind)
            if action is None:
                return kind == END and trial[-1] in self.tables.ends.values()
            if action >= 0:
                return True
            origin, length = self.rules[-1 - action][:2]
            del trial[-length:]
            trial.append(states[trial[-1]][origin])

    def _too_deep(self, start: int, end: int) -> None:
        message = f"this expression is nested more than {MAXIMUM_DEPTH} deep"
        helps = (
            "split it; a sum or a product of many terms needs no brackets, and repeated terms are better "
            "written with `@` and `sum`"
        )
        self.complaints.error("SPL120", message, Span(self.source, start, end), "", helps)
