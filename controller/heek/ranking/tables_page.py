"""The page of the tables: how each stands, and what an operator should know of it."""

from __future__ import annotations

from collections.abc import Iterable

from heek.ranking.findings import Finding
from heek.ranking.frame import page
from heek.ranking.gate import ENROL_PATH
from heek.ranking.table_list import TableLine
from heek.ranking.table_words import backlog, digest_words, how_known, last_seen, when_found
from heek.ranking.words import counted
from heek.serving.markup import Markup, element


def tables_html(service: str, state: str, tables: Iterable[TableLine], notice: str | None = None) -> bytes:
    """`/tables`: every table with its findings."""
    lines = list(tables)
    return page(
        service,
        state,
        f"The tables of {service}",
        element(
            "section",
            element("p", element("a", "The board", href="/"), class_="back"),
            element("h2", "The tables"),
            element("ul", *(_item(each) for each in lines), class_="tables", data_list="tables")
            if lines
            else _empty(),
            element("p", element("a", "Enrol a table", href=ENROL_PATH), class_="more"),
            class_="all-tables",
            aria_label="The tables",
        ),
        kind="tables-page",
        notice=notice,
    )


def _item(table: TableLine) -> Markup:
    key = table.key_id.hex()
    return element(
        "li",
        element(
            "h3",
            element("span", table.name),
            element("span", f"key {key}", class_="key quiet"),
        ),
        element(
            "p",
            element("span", _first_large(last_seen(table)), class_="seen"),
            " · ",
            element("strong", backlog(table)) if table.waiting else "nothing waits there",
            " · ",
            counted(table.holds[0], "match counts", "matches count"),
            digest_words(table),
            " · ",
            how_known(table),
            f" · {counted(table.set_aside, 'record', 'records')} set aside" if table.set_aside else None,
            class_="standing",
        )
        if table.seen_s is not None
        else element(
            "p",
            f"{_first_large(last_seen(table))} · "
            f"{counted(table.holds[0], 'match counts', 'matches count')} · {how_known(table)}",
            class_="standing",
        ),
        element("ul", *(_finding(each) for each in table.findings), class_="findings")
        if table.findings
        else None,
        data_key=key,
        class_="found" if table.findings else None,
    )


def _finding(found: Finding) -> Markup:
    return element(
        "li",
        element("strong", _first_large(found.kind)),
        element("span", f" {found.count} times,", class_="quiet") if found.count > 1 else None,
        element("span", f" {when_found(found)}", class_="quiet"),
        element("span", f"{_first_large(found.words)}.", class_="what"),
    )


def _empty() -> Markup:
    return element(
        "div",
        element("p", "No table has reported here yet.", class_="lead"),
        element(
            "p",
            "Start a table on this machine, or one elsewhere that names this KI in its configuration "
            "(ki.url): it shows a code, and an operator types it in.",
        ),
        class_="empty",
    )


def _first_large(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
