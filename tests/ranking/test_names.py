"""Generated names, HTML that cannot be broken out of, and limits: the small pure parts."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.ki.answers import SignedIn
from heek.ki.numbers import ki_number
from heek.ranking import accounts
from heek.ranking.ledger import Ledger
from heek.ranking.limits import Limit
from heek.ranking.names import FIRST, names_for
from heek.ranking.names import SECOND as SECOND_WORDS
from heek.ranking.store import Store
from heek.serving.markup import Markup, element


def test_a_number_always_draws_the_same_names() -> None:
    """A name is two plain words and a number, the same every time, and there is always another one."""
    number = ki_number(4022017)
    first = list(islice(names_for(number), 20))
    assert first == list(islice(names_for(number), 20))
    assert len(set(first)) == 20
    one, other, last = first[0].split()
    assert one in FIRST
    assert other in SECOND_WORDS
    assert 5 <= int(last) <= 99


def test_the_words_are_plain() -> None:
    """No word stands twice, and each is one word."""
    for words in (FIRST, SECOND_WORDS):
        assert len(set(words)) == len(words) == 40
        assert all(word.isalpha() and word.istitle() and len(word) <= 12 for word in words)


def test_a_taken_name_is_not_given_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever draws a name that somebody has gets the next one."""
    monkeypatch.setattr(
        accounts, "names_for", lambda _: iter(["Calm Keeper 7", "Calm Keeper 8", "Calm Keeper 9"])
    )
    names = [ledger.sign_in(None).name for _ in range(3)]
    assert names == ["Calm Keeper 7", "Calm Keeper 8", "Calm Keeper 9"]


def test_a_drawn_number_that_somebody_has_is_drawn_again(store: Store) -> None:
    """New numbers are nobody's yet."""
    drawn = iter([5, 5, 5, 6])
    ledger = Ledger(store, lambda: 0.0, lambda _: next(drawn))
    made: list[SignedIn] = [ledger.sign_in(None) for _ in range(2)]
    assert [each.player for each in made] == [ki_number(5), ki_number(6)]


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_no_text_becomes_markup(text: str) -> None:
    """Any text in an element or an attribute comes out of a parser as it went in, and as nothing else."""
    read = _Texts()
    read.feed(element("p", "a", element("b", text), title=text))
    read.close()
    assert (read.tags, read.values, read.text) == (["p", "b"], [text], f"a{text}")


def test_elements_are_what_they_should_be() -> None:
    """Attributes that are nothing are left out, and an element without content takes none."""
    assert element("a", 3, None, href="/", class_="x", hidden=True, id=None, title=False) == (
        '<a href="/" class="x" hidden>3</a>'
    )
    assert element("path", stroke_width=2) == '<path stroke-width="2"></path>'
    assert element("br") == "<br>"
    assert isinstance(element("br"), Markup)
    with pytest.raises(ValueError, match="no content"):
        element("img", "x")


@given(
    at_once=st.integers(1, 30),
    waits=st.lists(st.integers(0, 5 * SECOND), max_size=80),
)
def test_a_limit_holds_over_any_while(at_once: int, waits: list[int]) -> None:
    """However they are spread, no more than twice as many pass in a while; whoever waits as told passes."""
    over = 30 * SECOND
    limit = Limit(at_once, over)
    now, passed = 0, []
    for wait in waits:
        now += wait
        told = limit.take(now)
        assert told >= 0
        if told == 0:
            passed.append(now)
        elif at_once > 1:
            now += told * SECOND
            assert limit.take(now) == 0
            passed.append(now)
    for start in passed:
        assert sum(start <= each < start + over for each in passed) <= 2 * at_once
