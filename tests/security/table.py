"""The table of attacks in docs/security.md: `python -m tests.security.table` runs them all and writes it; the tests compare it with what they see.

Kinds of isolation that cannot be had where it runs keep the column that they had.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.security.attack import Kind
from tests.security.attacks import ATTACKS
from tests.security.verdicts import ISOLATIONS, ROOT, Verdict, verdicts_of

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"
_HEAD = ("attack", "by", *ISOLATIONS)


def written(page: Path = PAGE) -> dict[tuple[str, str], Verdict]:
    """What the page says, by attack and kind of isolation."""
    found = {}
    for line in page.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(_HEAD) and cells[0].startswith("`"):
            for isolation, word in zip(ISOLATIONS, cells[2:], strict=True):
                found[cells[0].strip("`"), isolation] = Verdict(word)
    return found


def rendered(verdicts: Mapping[tuple[str, str], Verdict]) -> str:
    """The table's text."""
    return "\n".join(_lines(verdicts))


def _lines(verdicts: Mapping[tuple[str, str], Verdict]) -> Iterator[str]:
    yield f"{len(ATTACKS)} attacks."
    for kind in Kind:
        yield from ("", f"### {kind}", "", f"| {' | '.join(_HEAD)} |", "|---" * len(_HEAD) + "|")
        for attack in ATTACKS:
            if attack.kind is kind:
                words = [verdicts.get((attack.name, isolation), Verdict.UNKNOWN) for isolation in ISOLATIONS]
                what = attack.what + (f" (needs {attack.needs} limits)" if attack.needs else "")
                yield f"| `{attack.name}` | {what} | {' | '.join(words)} |"


def main() -> None:
    """Rewrites the page's table."""
    verdicts = written()
    for isolation in ISOLATIONS:
        found = verdicts_of(isolation)
        if found.not_here:
            print(f"{isolation}: not here, its column stays: {found.not_here[-200:].strip()}", file=sys.stderr)
        verdicts |= {(name, isolation): row.verdict for name, row in found.rows.items()}
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{rendered(verdicts)}\n{END}{after}")


if __name__ == "__main__":
    main()
