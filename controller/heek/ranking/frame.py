"""What all pages share: their frame, the marks for kinds and ranks, and the page that only says why not.

Everything that is shown is text put into elements by `heek.serving.markup`, which escapes it. A page is whole
without its script; the script keeps it up to date by fetching it again. Elements that stand for one and the
same thing from one state of a page to the next carry a `data-key`.
"""

from __future__ import annotations

from typing import Final

from heek.ranking.board import Person
from heek.serving.markup import Content, Markup, element

_PENTAGON: Final = "M12 1.4 22.6 9.1 18.5 21.6H5.5L1.4 9.1Z"


def page(
    service: str,
    state: str,
    title: str,
    *content: Content,
    kind: str,
    announced: str | None = None,
    fault: str | None = None,
    notice: str | None = None,
) -> bytes:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="dark"),
        element("meta", name="theme-color", content="#120d0a"),
        element("title", title),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/board.css"),
        element("script", type="module", src="/static/live.js") if state else None,
    )
    header = element(
        "header",
        element(
            "a",
            element("img", src="/static/icon.svg", alt="", width=40, height=40),
            element(
                "h1",
                element("span", service, class_="service"),
                " ",
                element("span", "ranking-points of Ahyoheek", class_="of"),
            ),
            href="/",
            class_="home",
        ),
        element("p", id="live", data_live="unknown") if state else None,
    )
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        header,
        element(
            "main",
            element("p", f"{notice[:1].upper()}{notice[1:]}.", class_="note notice", data_key="notice")
            if notice
            else None,
            *content,
            id="content",
            tabindex=-1,
            data_state=state,
            data_announced=announced,
            data_fault=fault,
        ),
        element("p", id="announced", class_="unseen", role="status", aria_live="polite"),
        class_=kind,
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n".encode()


def words_page(service: str, title: str, words: str, fault: str | None = None) -> bytes:
    """A page that says only why there is no other; `fault` is what open pages say of it in short."""
    return page(
        service,
        "",
        f"{title} · {service}",
        element(
            "section",
            element("h2", title),
            element("p", words),
            element("p", element("a", "The board", href="/")),
            class_="words",
        ),
        kind="words-page",
        fault=fault,
    )


def glyph(kind: str | None) -> Markup:
    """Pen, page or beetle as the OLED draws them; a plain pentagon where a match was won by no kind."""
    if kind is None:
        drawn = element("path", d=_PENTAGON, fill="none", stroke="currentColor", stroke_width=2)
        return element("svg", drawn, viewBox="0 0 24 24", class_="glyph", aria_hidden="true")
    return element(
        "svg", element("use", href=f"/static/kinds.svg#{kind}"), class_=f"glyph {kind}", aria_hidden="true"
    )


def badge(rank: int) -> Markup:
    """The rank in the table's own form."""
    return element(
        "span",
        element(
            "svg",
            element("path", d=_PENTAGON),
            viewBox="0 0 24 24",
            aria_hidden="true",
        ),
        element("span", rank),
        class_="badge",
        data_rank=min(rank, 6),
    )


def unverified(person: Person) -> Markup | None:
    return element("span", "unverified", class_="tag") if person.unverified else None


def more(href: str, words: str) -> Markup:
    return element("p", element("a", words, href=href), class_="more")
