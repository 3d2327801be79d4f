"""Whole-number arithmetic for calculator tools and ladders: + - * and parentheses, over text that a model wrote.

Its own parser, so that no text can reach the interpreter; length and depth are bounded, so every text ends at once.
"""

import re

MAX_CHARS = 24

_TOKEN = re.compile(r"\s*([0-9]+|[-+*()])")


def evaluate(text: str) -> int | None:
    """The value, or None where the text is not such an expression."""
    if len(text) > MAX_CHARS:
        return None
    tokens = _tokens(text)
    if tokens is None:
        return None
    value, rest = _sum(tokens, 0)
    return value if rest == len(tokens) else None


def read_integer(text: str | None) -> int | None:
    """A whole number written in plain digits with an optional sign; None for anything else."""
    stripped = (text or "").strip()
    return int(stripped) if re.fullmatch(r"[+-]?[0-9]{1,18}", stripped) else None


def _tokens(text: str) -> list[str] | None:
    tokens, position = [], 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None or not match[1].isascii():
            return None
        tokens.append(match[1])
        position = match.end()
    return tokens


def _sum(tokens: list[str], at: int) -> tuple[int | None, int]:
    value, at = _product(tokens, at)
    while value is not None and at < len(tokens) and tokens[at] in "+-":
        sign = 1 if tokens[at] == "+" else -1
        term, at = _product(tokens, at + 1)
        value = None if term is None else value + sign * term
    return value, at


def _product(tokens: list[str], at: int) -> tuple[int | None, int]:
    value, at = _factor(tokens, at)
    while value is not None and at < len(tokens) and tokens[at] == "*":
        factor, at = _factor(tokens, at + 1)
        value = None if factor is None else value * factor
    return value, at


def _factor(tokens: list[str], at: int) -> tuple[int | None, int]:
    """A number, a signed factor or a sum in parentheses."""
    if at >= len(tokens):
        return None, at
    token = tokens[at]
    if token.isdigit():
        return int(token), at + 1
    if token in "+-":
        value, at = _factor(tokens, at + 1)
        return (None if value is None else -value if token == "-" else value), at
    if token == "(":
        value, at = _sum(tokens, at + 1)
        if value is None or at >= len(tokens) or tokens[at] != ")":
            return None, at
        return value, at + 1
    return None, at
