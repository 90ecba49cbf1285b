"""A page to read that the server draws whole, in the look of the table's page and without a script."""

from __future__ import annotations

from heek.serving.markup import Content, element


def sheet(name: str, title: str, *content: Content, back: tuple[str, str] | None = None) -> bytes:
    """The page of the table `name`; `back` is a way besides the one to the table: where to, and its words."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="dark"),
        element("title", f"{title} · {name}"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/page.css"),
        element("link", rel="stylesheet", href="/static/photo_finish.css"),
    )
    ways = element(
        "nav",
        element("a", "The table", href="/"),
        element("a", back[1], href=back[0]) if back is not None else None,
        aria_label="Where to",
    )
    body = element(
        "body",
        element("header", element("p", name), ways),
        element("main", element("h1", title), *content),
        class_="photo",
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n".encode()
