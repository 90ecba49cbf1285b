"""The page of fairness: what the table has measured of itself, a row for each button, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heek.serving.markup import Content, Markup, element
from heek.web.sheet import sheet

_COLUMNS = (("count", ""), ("median_ms", "median"), ("p99_ms", "99 %"), ("max_ms", "longest"))

_BACK = ("/photofinish", "Photo finish")


def fairness_html(name: str, report: Mapping[str, Any] | None, shortcomings: Sequence[str]) -> bytes:
    """`/fairness`; without a report, as long as no match is over."""
    if report is None:
        return sheet(
            name,
            "Fairness",
            element("p", "No match is over since the start: play one, and look again."),
            back=_BACK,
        )
    stamps = {
        "kernel": "the kernel stamped every press at the instant its contact closed",
        "simulated": "the pins are simulated, and so are the stamps",
        "callback": "the pin library has no stamps: a press has that of the program's call, a little later",
    }
    said = (
        "A press is judged by the instant its contact closed, however late the program gets to it; "
        f"here {stamps[report['stamps']]}. The figures are those at the end of the last match."
    )
    return sheet(
        name,
        "Fairness",
        element("p", said, class_="dim"),
        _verdict(shortcomings),
        element(
            "dl",
            *(
                element("div", element("dt", what), element("dd", str(count)))
                for what, count in (
                    ("Presses that came after their round was compared", report["late_deliveries"]),
                    ("Edges that never came", report["dropped"]),
                )
            ),
            class_="facts",
        ),
        element("h2", "From the contact to its verdict, in milliseconds"),
        _table(
            [
                (f"Seat {row['seat']} {row['button']}", row["button"], row)
                for row in report["buttons"]
                if row["count"]
            ],
            "presses",
        ),
        element("h2", "The program and the lamps, in milliseconds"),
        _table(
            [
                ("Behind its time", None, report["lag"]),
                ("First to last LED of a reveal", None, report["reveals"]),
            ],
            "times",
        ),
        *_rejected(report),
        back=_BACK,
    )


def _verdict(shortcomings: Sequence[str]) -> Markup:
    if not shortcomings:
        return element("p", "No press was judged unfairly, and nothing came near it.", class_="note")
    return element(
        "ul",
        *(element("li", f"{each[:1].upper()}{each[1:]}.", class_="note") for each in shortcomings),
        class_="shortcomings",
    )


def _table(rows: Sequence[tuple[str, str | None, Mapping[str, Any]]], counted: str) -> Content:
    if not rows:
        return element("p", "Nobody has pressed anything.", class_="dim")
    head = element(
        "tr", element("td"), *(element("th", words or counted, scope="col") for _, words in _COLUMNS)
    )
    return element(
        "div",
        element(
            "table",
            element("thead", head),
            element(
                "tbody",
                *(
                    element(
                        "tr",
                        element("th", what, scope="row", class_=kind),
                        *(element("td", _shown(key, figures[key])) for key, _ in _COLUMNS),
                    )
                    for what, kind, figures in rows
                ),
            ),
            class_="figures",
        ),
        class_="wide",
        tabindex="0",
        role="group",
        aria_label="Figures",
    )


def _shown(key: str, value: float) -> str:
    return f"{value:d}" if key == "count" else f"{value:.2f}"


def _rejected(report: Mapping[str, Any]) -> Sequence[Content]:
    counts: Mapping[str, int] = report["rejected"]
    if not counts:
        return ()
    words = {
        "bounce": "bounce of a switch",
        "chord": "buttons of one seat that closed together",
        "noise": "buttons all over the table that closed together",
        "stuck": "of a button that is stuck",
        "flood": "of a button that is set aside",
        "repeated": "said what was known already",
        "lost": "came after one that never did",
        "too_old": "came too late to be placed",
    }
    return (
        element("h2", "Edges that came to nothing"),
        element(
            "dl",
            *(
                element("div", element("dt", words.get(reason, reason)), element("dd", str(count)))
                for reason, count in counts.items()
            ),
            class_="facts",
        ),
    )
