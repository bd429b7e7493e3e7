"""Prose is wrapped at 100 columns and avoids words that made earlier texts hard to read.

`vale` would be the usual tool; its package downloads a program when it is first used, so a check
that has to work offline uses this short list instead.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WIDTH = 100
# What we avoid, and what we write instead.
AVOIDED = {
    r"mend(s|ed|ing)?": "fix",
    r"go(es)? on": "continue",
    r"who finds": "say who, or use the passive",
    r"(is|are|be) told (of|to|what)": "gets, knows",
    r"what \w+ (is|are) told": "what it knows",
    r"so many (?!of|that|other)": "this many, or the number",
    r"ranked are": "start with the subject",
    r"mix(es)? for nothing": "at no cost",
}


def tracked(pattern):
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return sorted(set(listed.stdout.split()))


if (ROOT / ".git").exists():  # pages in reproduce/results are written by a program
    PAGES = [page for page in tracked("*.md") if "/results/" not in page]
    MODULES = tracked("src/*.py")
else:  # a source distribution has no pages
    PAGES, MODULES = [], sorted(str(path) for path in (ROOT / "src").rglob("*.py"))


def prose(text):
    """The numbered lines of a page that are neither code, tables, pictures, links nor formulas."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        fenced = fenced != fence
        unwrappable = line.startswith(("|", "![", "[![")) or "$" in line or "](" in line[:3]
        if not (fenced or fence or unwrappable):
            yield number, line


def avoided_in(text):
    lowered = text.lower()
    return [
        f"{match[0]!r}: {instead}"
        for words, instead in AVOIDED.items()
        for match in re.finditer(rf"\b{words}\b", lowered)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_wrapped(page):
    lines = prose((ROOT / page).read_text(encoding="utf-8"))
    assert [number for number, line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_use_common_words(page):
    assert avoided_in((ROOT / page).read_text(encoding="utf-8")) == []


def test_modules_use_common_words():
    found = {name: avoided_in((ROOT / name).read_text(encoding="utf-8")) for name in MODULES}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_check_finds_what_it_should():
    long = "word " * 21
    assert [
        n for n, line in prose(f"{long}\n```\n{long}\n```\n| {long} |") if len(line) > WIDTH
    ] == [1]
    assert avoided_in("A restart goes on and mends it.") == ["'mends': fix", "'goes on': continue"]
    assert avoided_in("They go one by one; recommend; two sets told apart.") == []
