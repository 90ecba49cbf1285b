"""What the doctor finds of the KI: link, backlog, enrolment, key, and what the two do not agree in.

While a table runs its page says how the link stands, for the link itself is the table's. Backlog and
enrolment are the journal's to tell, which may be read at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from heek.config import KiConfig
from heek.doctor.findings import Finding, Mark

AREA: Final = "ki"
_REFUSED_REMEDY: Final = "look at the KI's list of tables (heek ki tables); nothing of them is lost here"


@dataclass(frozen=True, slots=True)
class KiKept:
    """What the journal of a table has kept of its KI."""

    waiting: int
    """Results that the KI has not answered for."""
    refused: int
    """Results that it has rejected, or that are in conflict there."""
    more: int
    """Matches that the KI holds of this table and the journal has not; may be negative."""
    service: str | None
    """The name of the KI that the table believes; None: it was enrolled at none yet."""
    key: str = ""
    """That KI's key id, as hexadecimal text."""
    found: str = ""
    """How it was found: `code` or `sight`."""
    acknowledged: str = ""
    """By whom and when somebody has said to know of `more` as it is; empty: nobody has."""
    known: bool = True
    """That KI knows the key that this table has."""


@dataclass(frozen=True, slots=True)
class KiAsked:
    """What there is to know of one table's way to its KI."""

    config: KiConfig
    kept: KiKept | None
    """None: there is no journal, or none that can be read, which is told elsewhere."""
    running: bool
    told: Mapping[str, Any] | None
    """What the running table's page tells of the KI; None: it has no page, or it does not answer."""
    unreached: str | None
    """Why nothing listens at `ki.url`; empty: something does; None: it was not tried."""
    key: str
    """The table's key id, as hexadecimal text; empty: it has no key yet."""
    key_trouble: str
    """What is wrong with the file of the table's key, and after the last semicolon what to do."""


def ki_findings(asked: KiAsked) -> Iterator[Finding]:
    """Every finding of the KI, in the order in which people mend things."""
    yield _key(asked)
    linked = asked.config.link != "none"
    if linked:
        yield from _link(asked)
    else:
        yield Finding(AREA, "link", Mark.OK, 'ki.link is "none": results stay on this table')
    kept = asked.kept
    if kept is None:
        return
    if linked or kept.service is not None:
        yield _enrolment(asked, kept)
    if linked or kept.waiting:
        waits = f"{kept.waiting or 'no'} {'result waits' if kept.waiting == 1 else 'results wait'}"
        yield Finding(AREA, "backlog", Mark.OK, f"{waits} for the KI")
    if kept.refused:
        results = "result" if kept.refused == 1 else "results"
        yield Finding(
            AREA, "refused", Mark.WARNING, f"the KI does not count {kept.refused} {results}", _REFUSED_REMEDY
        )
    if kept.more:
        yield _disagreement(kept.more, kept.acknowledged)
    counters = (asked.told or {}).get("counters")
    if asked.config.link == "http" and isinstance(counters, dict) and counters:
        # Of a wire they are judged elsewhere (`heek.doctor.running_link`).
        said = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in counters.items())
        yield Finding(AREA, "counters", Mark.OK, said)


def _key(asked: KiAsked) -> Finding:
    if asked.key_trouble:
        found, _, remedy = asked.key_trouble.rpartition("; ")
        return Finding(AREA, "key", Mark.WRONG, found or asked.key_trouble, remedy if found else "mend it")
    said = f"this table's key is {asked.key}" if asked.key else "none yet: the table's first start makes it"
    return Finding(AREA, "key", Mark.OK, said)


def _link(asked: KiAsked) -> Iterator[Finding]:
    where = asked.config.url or asked.config.port or "found by DNS-SD"
    name = f"{asked.config.link}, {where}"
    told = asked.told
    if told is not None:
        state, last = told.get("state"), told.get("last")
        since = f" (last answer at {last})" if last else " (no answer since the start)"
        if state == "up":
            yield Finding(AREA, "link", Mark.OK, f"{name}: the KI answers{since}")
        elif state == "unknown":
            yield Finding(AREA, "link", Mark.OK, f"{name}: the table has not asked yet")
        else:
            why = str(told.get("why") or "it does not answer")
            yield Finding(
                AREA,
                "link",
                Mark.WARNING,
                f"{name}: {why}{since}",
                "see that the KI runs and that cable or network leads there; results wait meanwhile",
            )
    elif asked.running:
        said = f"{name}: it is the running table's, whose page does not answer"
        yield Finding(AREA, "link", Mark.SKIPPED, said)
    elif asked.config.link == "serial":
        # The port was looked at with the others; who is at its other end only a running table finds out.
        return
    elif asked.unreached is None:
        yield Finding(AREA, "link", Mark.SKIPPED, f"{name}: a running table looks for it")
    elif asked.unreached:
        yield Finding(
            AREA,
            "link",
            Mark.WARNING,
            f"{name}: {asked.unreached}",
            "see that the KI runs, and that ki.url names its machine; results wait meanwhile",
        )
    else:
        yield Finding(AREA, "link", Mark.OK, f"{name}: something listens there")


def _enrolment(asked: KiAsked, kept: KiKept) -> Finding:
    if kept.service is not None and kept.known:
        how = "by a code" if kept.found == "code" else "at first sight"
        said = f"at “{kept.service}”, whose key {kept.key} is pinned; found {how}"
        return Finding(AREA, "enrolment", Mark.OK, said)
    nowhere = "at no KI yet"
    if kept.service is not None:
        nowhere = (
            f"not at “{kept.service}” any more, the only KI that this table believes (key {kept.key}): "
            "that does not know this table's key"
        )
    claim = (asked.told or {}).get("claim")
    if claim:
        return Finding(
            AREA,
            "enrolment",
            Mark.WARNING,
            f"{nowhere}, so no result is taken",
            f"at the KI: heek ki enrol {str(claim).replace(' ', '')}",
        )
    if asked.running:
        remedy = "see to the link first; then it enrols by itself, or shows a code"
    else:
        remedy = "start the table and, if its screen shows a code, type that in at the KI: heek ki enrol"
    return Finding(AREA, "enrolment", Mark.WARNING, nowhere, remedy)


def _disagreement(more: int, acknowledged: str) -> Finding:
    if more > 0:
        matches = "match" if more == 1 else "matches"
        found = f"the KI holds {more} {matches} of this table that this journal has not"
    else:
        found = f"the KI lacks {-more} of what it has answered for, and offering all again changed nothing"
    if acknowledged:
        return Finding(AREA, "agreement", Mark.OK, f"{found}; acknowledged {acknowledged}")
    return Finding(
        AREA,
        "agreement",
        Mark.WARNING,
        found,
        "was the table's card, or the KI, put back from a backup? see heek ki tables; if that is all, say so "
        "with the table stopped: heek journal acknowledge",
    )
