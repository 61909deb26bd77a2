"""Say at the end of `make test` which tests were skipped, and how to get what they need."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree


def reasons(results: Iterable[Path]) -> Counter[str]:
    """How many tests were skipped for each reason, by the results that pytest writes for other programs (JUnit's)."""
    found: Counter[str] = Counter()
    for path in results:
        for skipped in ElementTree.parse(path).iter("skipped"):
            if skipped.get("type") != "pytest.xfail":
                found[_reason(skipped).removeprefix("Skipped: ")] += 1
    return found


def _reason(skipped: ElementTree.Element) -> str:
    message = skipped.get("message", "")
    if message == "collection skipped":  # A whole file: its path, the line, and why.
        message = str(ast.literal_eval(skipped.text or "")[-1])
    return message


def summary(found: Counter[str]) -> str:
    """One line if nothing was skipped. Otherwise the reasons, which say what to do, those of most tests first."""
    if not found:
        return "No test was skipped."
    lines = [f"{found.total()} tests or files of tests were skipped:"]
    lines += [f"  {count:4}  {reason}" for reason, count in sorted(found.items(), key=lambda each: (-each[1], each[0]))]
    return "\n".join(lines)


if __name__ == "__main__":
    results = sorted(Path(sys.argv[1]).glob("*.xml"))
    print(
        summary(reasons(results)) if results else f"There are no results in {sys.argv[1]}: the tests were interrupted."
    )
