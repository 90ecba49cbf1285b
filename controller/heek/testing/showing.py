"""What a test that failed shows of its table: the last events, the lamps, the OLED."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from heek.kinds import SEATS
from heek.simulator.terminal import half_blocks
from heek.testing.table import Event, Table

LAST = 12
"""So many events: what led to the failure, on one screen."""

WIDTH = 108


def event_table(events: Sequence[Event], last: int = LAST) -> list[str]:
    """The last events, one a line: number, time in seconds, name, fields; long lines are cut."""
    if not events:
        return ["no event came"]
    shown = events[-last:]
    wide = max(len(str(event["event"])) for event in shown)
    of = f"the last {len(shown)} of {len(events)} events" if len(events) > len(shown) else "all events"
    return [f"{of}:", *(_row(event, wide) for event in shown)]


def _row(event: Event, wide: int) -> str:
    fields = "  ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
        for name, value in event.items()
        if name not in ("seq", "at", "event")
    )
    row = f"{event['seq']:>6} {event['at']:>12.6f}  {event['event']:<{wide}}  {fields}".rstrip()
    return row if len(row) <= WIDTH else f"{row[: WIDTH - 1]}…"


def table_shown(table: Table, folder: Path, *, picture: bool) -> str:
    """Everything about a table whose test failed; writes the OLED's frame and the story beside it.

    `picture` draws the OLED as text too, 128 x 32 characters, unless it is dark. The table stands still.
    """
    rig = table.rig
    lines = event_table(table.told)
    lines.append(f"at {rig.rules_now / 1e9:.3f} s, the test's time {table.now:.3f} s:")
    lines.append("lamps: " + ", ".join(f"{seat} {rig.lamp(seat)}" for seat in SEATS))
    image = rig.image
    dark = image.getbbox() is None
    lines.append(f"OLED: {rig.screen}{', dark' if dark else ''}")
    if picture and not dark:
        lines += (row.rstrip() for row in half_blocks(image))
    frame, story = folder / "table-oled.png", folder / "table-story.jsonl"
    try:
        image.save(frame)
        story.write_text(table.story, encoding="utf-8")
    except OSError as error:
        lines.append(f"frame and story could not be kept in {folder}: {error.strerror or error}")
    else:
        lines += [f"the frame: {frame}", f"again as a story: heek simulate {story}"]
    return "\n".join(lines)
