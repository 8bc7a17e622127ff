"""`spdsl fmt`: one canonical layout, with every comment kept and the meaning unchanged.

In: a tree with its source. Out: text. The formatter moves tokens, it doesn't print the tree, so brackets and line
breaks that the user chose stay. Names and signs get their ASCII spelling.
"""

from __future__ import annotations

from spdsl.diagnostics import Source
from spdsl.language.complaints import Complaints
from spdsl.language.layout import STATEMENT_KINDS, Block, Line, blocks
from spdsl.language.lexer import Token, lex
from spdsl.language.tree import Comment, Model

__all__ = ["format_model"]

_INDENT = "  "
_CONTINUED = "      "
_INLINE = ("define", "age")
"""Sections whose only statement shares the line of the keyword."""

_UNARY_AFTER = {"LPAR", "LSQB", "COMMA", "SIGN", "TIMES", "CARET", "COMPARE", "EQUAL", "IN", "IF", *STATEMENT_KINDS}


def format_model(tree: Model) -> str:
    """The canonical text of a parsed model; formatting it again changes nothing."""
    source = tree.source
    lexed = lex(source, Complaints())
    found = blocks(source, lexed.tokens, Complaints())
    return _Formatter(source, found, lexed.comments).run()


class _Row:
    """One line of the output: its text, and the comment at its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.comment = ""


class _Words:
    """A row under way; its words are joined at the end, for rows may have many thousands."""

    def __init__(self, head: str) -> None:
        self.head = head
        self.words: list[str] = []

    def row(self) -> _Row:
        return _Row((self.head + "".join(self.words)).rstrip())


class _Formatter:
    def __init__(self, source: Source, found: list[Block], comments: list[Comment]) -> None:
        self.source = source
        self.blocks = found
        self.comments = comments
        self.next_comment = 0
        self.rows: list[_Row] = []
        self.end = 0  # offset up to which the source has been written

    def run(self) -> str:
        for block in self.blocks:
            if block.keyword is not None and block.token is not None:
                self._section(block, block.token)
        self._comments_before(len(self.source.text) + 1, "end")
        return _join(self.rows)

    # --- sections ---

    def _section(self, block: Block, keyword: Token) -> None:
        assert block.keyword is not None
        self._comments_before(keyword.start, "section")
        if self.rows and not self._continues_comment(keyword.start):
            self._blank()
        inline = block.keyword in _INLINE and len(block.lines) == 1
        if inline and not self._comment_between(keyword.end, block.lines[0].tokens[0].start):
            self._statement(block.lines[0], f"{block.keyword} ", block, 0)
            return
        self.rows.append(_Row(block.keyword))
        self.end = keyword.end
        width = _column(block)
        for line in block.lines:
            self._comments_before(line.tokens[0].start, "statement")
            if self.source.text.count("\n", self.end, line.tokens[0].start) > 1 and self.rows[-1].text != block.keyword:
                self._blank()
            self._statement(line, _INDENT, block, width)

    def _continues_comment(self, offset: int) -> bool:
        """Whether the row above is a comment that belongs to the section below it."""
        above = self.rows[-1]
        return above.text.startswith("#") and self.source.text.count("\n", self.end, offset) <= 1

    def _blank(self) -> None:
        if self.rows and (self.rows[-1].text or self.rows[-1].comment):
            self.rows.append(_Row(""))

    # --- comments ---

    def _comment_between(self, start: int, end: int) -> bool:
        return any(start <= comment.span.start < end for comment in self.comments[self.next_comment :])

    def _comments_before(self, offset: int, what: str) -> None:
        """Write the comments up to an offset: at the end of the row above, or on rows of their own.

        `what` stands at the offset: before a section (or the end) a comment in the first column belongs to it.
        """
        first = True
        while self.next_comment < len(self.comments):
            comment = self.comments[self.next_comment]
            if comment.span.start >= offset:
                return
            self.next_comment += 1
            gap = self.source.text[self.end : comment.span.start]
            if "\n" not in gap and self.rows and not self.rows[-1].comment and self.end > 0:
                self.rows[-1].comment = comment.text
            else:
                indented = what == "statement" or self.source.position(comment.span.start)[1] > 1
                indented = indented and any(row.text and row.text[0] != "#" for row in self.rows)
                if gap.count("\n") > 1 or (first and what == "section" and not indented):
                    self._blank()
                self.rows.append(_Row((_INDENT if indented else "") + comment.text))
                first = indented
            self.end = comment.span.end

    # --- statements ---

    def _statement(self, line: Line, head: str, block: Block, width: int) -> None:
        tokens = line.tokens
        row = _Words(head)
        previous: Token | None = None
        for index, token in enumerate(tokens):
            if previous is not None:
                row = self._broken(row, previous, token)
                if row.words:
                    row.words.append(self._space(tokens, index, width, block))
            word = _shown(token)
            row.words.append(word.ljust(width) if index == 0 and len(tokens) > 1 else word)
            previous = token
        self.rows.append(row.row())
        self.end = tokens[-1].end

    def _broken(self, row: _Words, previous: Token, token: Token) -> _Words:
        """The row that the token goes to: a new one where the user broke the line or wrote a comment."""
        gap = self.source.text[previous.end : token.start]
        if "\n" not in gap or (previous.kind in STATEMENT_KINDS and "#" not in gap):
            return row
        self.rows.append(row.row())
        self.end = previous.end
        while self.next_comment < len(self.comments) and self.comments[self.next_comment].span.start < token.start:
            comment = self.comments[self.next_comment]
            self.next_comment += 1
            own_line = "\n" in self.source.text[self.end : comment.span.start]
            if own_line or self.rows[-1].comment:
                self.rows.append(_Row(_CONTINUED + comment.text))
            else:
                self.rows[-1].comment = comment.text
            self.end = comment.span.end
        return _Words(_CONTINUED)

    def _space(self, tokens: list[Token], index: int, width: int, block: Block) -> str:
        """What stands between a token and the one before it."""
        before, token = tokens[index - 1], tokens[index]
        if index == 1 and width:
            return " " if block.keyword != "minimize" else ""
        if before.kind in ("LPAR", "LSQB", "CARET"):
            return ""
        if token.kind in ("RPAR", "RSQB", "COMMA", "CARET", "TRANSPOSE"):
            return ""
        if token.kind == "LPAR":
            return "" if before.kind in ("NAME", "PIECEWISE") or self._tight(tokens, index - 1) else " "
        if before.kind == "SIGN" and _is_unary(tokens, index - 1):
            return ""
        if token.kind == "TIMES":
            return "" if self._tight(tokens, index) else " "
        if before.kind == "TIMES":
            return "" if self._tight(tokens, index - 1) else " "
        return " "

    def _tight(self, tokens: list[Token], index: int) -> bool:
        """Whether the user wrote `2*n` rather than `2 * n`; `@` always has spaces."""
        token = tokens[index]
        if token.kind == "SIGN":
            return _is_unary(tokens, index)
        if token.kind != "TIMES" or token.text == "@" or index == 0 or index + 1 == len(tokens):
            return token.kind in ("LPAR", "LSQB", "CARET")
        before, after = tokens[index - 1], tokens[index + 1]
        return before.end == token.start and after.start == token.end


def _is_unary(tokens: list[Token], index: int) -> bool:
    return index == 0 or tokens[index - 1].kind in _UNARY_AFTER


def _shown(token: Token) -> str:
    if token.kind == "SUBJECT_TO":
        return "subject to"
    if token.kind == "ASSUME_CONVEX":
        return "assume convex"
    return token.text


def _column(block: Block) -> int:
    """How wide the first words of a section's statements are made, so that what follows lines up."""
    first = [line.tokens[0] for line in block.lines]
    if block.keyword == "minimize":
        return max(len(token.text) for token in first) + 2
    if block.keyword in ("data", "variable"):
        return max(len(token.text) for token in first)
    return 0


def _join(rows: list[_Row]) -> str:
    """The text: comments at the ends of neighbouring rows start in one column."""
    lines: list[str] = []
    index = 0
    while index < len(rows):
        group = index
        while group < len(rows) and rows[group].comment:
            group += 1
        if group == index:
            lines.append(rows[index].text.rstrip())
            index += 1
            continue
        width = max(len(row.text.rstrip()) for row in rows[index:group]) + 2
        lines += [f"{row.text.rstrip():<{width}}{row.comment}" for row in rows[index:group]]
        index = group
    return "\n".join(lines).strip("\n") + "\n"
