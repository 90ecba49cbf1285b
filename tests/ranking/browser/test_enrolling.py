"""An operator at the KI's pages in a real browser: a code is typed in on a phone, the tables are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from heek.ranking.service_keys import read_operator_key
from tests.ranking.browser.test_pages import comes, live, mark, marked, says
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import RunningKi
from tests.ranking.test_enrolling import ELSEWHERE, Claiming

if TYPE_CHECKING:
    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
SMALL = """
[...document.querySelectorAll("main :is(a, input, button)")].filter((each) => {
  const box = each.getBoundingClientRect();
  return box.height < 44 || box.width < 44 || box.left < 0 || box.right > innerWidth;
}).map((each) => each.outerHTML)
"""
"""What a finger would miss."""


@pytest.fixture
def key(ki: RunningKi) -> str:
    """What the operator of this KI types in as their key."""
    return read_operator_key(ki.database.parent)


@pytest.fixture
def claiming(ki: RunningKi) -> Claiming:
    """A table elsewhere that shows the code BCDF GHJK and waits."""
    waits = Claiming(FakeTable(1, "Beside the <fountain>"))
    assert not waits.enrolled(ki)
    return waits


def typed_in(page: Page, code: str, key: str, *, replaces: str = "") -> None:
    """Fill in the form as a person at a phone does, and send it."""
    for label, words in (
        ("The code on the table's display", code),
        ("The operator's key", key),
        ("The table whose place it takes", replaces),
    ):
        page.get_by_label(label).fill(words)
    page.get_by_role("button", name="Enrol").tap()


def said(page: Page, words: str) -> None:
    """Wait until the page says this of what was typed into it."""
    page.locator("[role=status].said").get_by_text(words, exact=True).wait_for(timeout=10_000)


def test_a_code_is_typed_in_on_a_phone(
    ki: RunningKi, claiming: Claiming, key: str, open_page: OpenPage
) -> None:
    """From the list of tables to the form, past a wrong code, to a table that is enrolled and in the list."""
    tables = open_page(ki, "/tables")
    live(tables)
    mark(tables)
    says(tables, "No table has reported here yet.")
    # A browser writes on its console that an answer was 400.
    page = open_page(ki, "/tables", quiet=True, **PHONE)
    page.get_by_role("link", name="Enrol a table").tap()
    page.wait_for_url("**/enrol")
    assert page.locator(".claims li").all_inner_texts() == ["Beside the <fountain>, since just now"]
    assert claiming.code not in page.content().upper().replace(" ", "")

    typed_in(page, "XXXX XXXX", key)
    said(
        page, "No table shows this code; type it as the display shows it now (it changes every ten minutes)."
    )
    assert key not in page.content()
    assert page.locator("input").evaluate_all("inputs => inputs.map(each => each.value)") == ["", "", ""]
    assert page.locator(".claims li").count() == 1
    assert not claiming.enrolled(ki)
    assert tables.locator(".tables > li").count() == 0

    typed_in(page, "bcdf ghjk", key)
    name = claiming.table.key_id.hex()
    said(page, f"Beside the <fountain> is enrolled; its key is {name}.")
    assert claiming.enrolled(ki)
    says(page, "None just now.")

    page.get_by_role("link", name="The tables").tap()
    page.wait_for_url("**/tables")
    (line,) = page.locator(".tables > li").all_inner_texts()
    assert f"key {name}" in line
    assert line.endswith("0 matches count · enrolled")
    comes(tables, "document.querySelectorAll('.tables > li').length === 1")
    assert marked(tables), "whoever has the list open sees it without a reload"


def test_a_wrong_key_enrols_nobody(ki: RunningKi, claiming: Claiming, key: str, open_page: OpenPage) -> None:
    """The right code with another key is refused, with words; the key file's whole line will do."""
    page = open_page(ki, "/enrol", quiet=True, **PHONE)
    typed_in(page, claiming.code, "a" * len(key))
    says(page, "This is not the operator's key: the word after secret in operator.key, beside the ledger.")
    assert not claiming.enrolled(ki)
    assert page.locator(".claims li").count() == 1
    typed_in(page, claiming.code, f"secret {key}")
    said(page, f"Beside the <fountain> is enrolled; its key is {claiming.table.key_id.hex()}.")
    assert claiming.enrolled(ki)


def test_a_table_takes_anothers_place_on_the_page(
    ki: RunningKi, claiming: Claiming, key: str, open_page: OpenPage
) -> None:
    """After a swap the old table's name is typed in too; a name that no table has enrols nobody."""
    old = FakeTable(2, "Table 2")
    ki.introduce(old)
    page = open_page(ki, "/enrol", quiet=True, **PHONE)
    typed_in(page, claiming.code, key, replaces="Table 9")
    says(page, "No table is called 'Table 9'")
    assert not claiming.enrolled(ki)
    typed_in(page, claiming.code, key, replaces="Table 2")
    page.locator(".done").wait_for()
    assert claiming.enrolled(ki)
    page.goto(ki.url + "tables")
    assert "replaced by Beside the <fountain>" in page.locator(".tables").inner_text()


def test_enrolling_by_keyboard_alone(
    ki: RunningKi, claiming: Claiming, key: str, open_page: OpenPage
) -> None:
    """Tab leads from field to field in their order, and Enter sends them."""
    page = open_page(ki, "/enrol")
    page.locator(".back a").focus()
    for words in ("BCDFGHJK", key):
        page.keyboard.press("Tab")
        page.keyboard.type(words)
    assert page.get_by_label("The operator's key").get_attribute("type") == "password"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "submit"
    page.keyboard.press("Enter")
    page.locator(".done").wait_for()
    assert claiming.enrolled(ki)


@pytest.mark.parametrize("width", [320, 360, 1366])
@pytest.mark.usefixtures("claiming")
def test_an_operators_pages_are_fit(ki: RunningKi, key: str, open_page: OpenPage, width: int) -> None:
    """Empty, with the longest names, refused, done, in trouble: axe finds nothing, all can be hit."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = open_page(ki, "/tables", quiet=True, **PHONE | {"viewport": {"width": width, "height": 740}})

    def fit(state: str) -> None:
        found = [(each["id"], each["impact"]) for each in axe.run(page).response["violations"]]
        assert found == [], state
        assert page.evaluate("document.documentElement.scrollWidth") <= width, state
        assert page.evaluate(SMALL) == [], state

    fit("no tables")
    wide = Claiming(FakeTable(3, "W" * 24), "MWQXZSRV")
    wide.ask(ki, ELSEWHERE)
    page.goto(ki.url + "enrol")
    assert page.locator(".claims li").count() == 2
    fit("tables that wait")
    typed_in(page, "hello", key)
    page.locator(".said").wait_for()
    fit("refused")
    typed_in(page, wide.code, key)
    page.locator(".done").wait_for()
    fit("done")
    table = wide.table
    backup = table.restarted(3)
    ki.report(table.sealed({ANN: 1, BEN: 1}))
    ki.report(backup.sealed({ANN: 1, BEN: 1}))
    ki.post("/v1/records", body(backup.seal(b"no record")))
    ki.post("/v1/sync", table.question(1, waiting=3, holds=(2, bytes(16))))
    page.goto(ki.url + "tables")
    assert page.locator(".findings li").count() == 1
    fit("a table in trouble")
