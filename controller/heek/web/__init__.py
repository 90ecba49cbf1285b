"""The table's page: shows the table to browsers, and closes contacts of the mock pins for those who may.

What a browser can ask, all on one origin and without CORS; answers are JSON unless said otherwise.

`GET /`, `/static/NAME`, `/kinds.svg`
    The page; its files; the three kinds as SVG symbols `pen`, `page` and `beetle`. A phone that has not
    joined gets a page (403) that says to scan the QR code.
`GET /about`
    What this browser may do here: `heek.web.about`.
`GET /state`
    The table: `heek.web.state`. Its `now` is the table's time at which it was sent.
`GET /live`
    Server-sent events. `state`: as above, whole each time. `about`: as above, at the start and whenever it
    has changed for this browser. `beat`: `{"now": seconds}`, every 5 s.
`GET /photofinish`, `/photofinish/MATCH`, `/photofinish/MATCH/ROUND`
    Pages: the matches that are over and kept, a match's rounds, and who pressed when in one of them.
`GET /fairness`, `/fairness.json`
    How fair the table has been since it started: a page, and the same for programs with what is wrong.
`GET /metrics`
    Whether the journal is well, and how it stands with the KI and its link, as Prometheus reads it:
    `heek.web.metrics`.
`GET /healthz`
    `{"ok": true, "faults": []}`; a table that does not save, or whose journal was damaged, plays on and says
    why, a sentence each, with 503. So does one whose past matches could not be read when somebody asked.
`POST /contacts` `{"seat", "button", "closed", "hand", "n"}`
    A hand closes or opens a contact: `{"held": bool}` is whether it holds it now. For as long as the finger
    is down the page says so again each second, with the same `n`; after 3 s without a word the contact
    opens, and then only a higher `n` closes it. With `"at"`, the table's time at which the finger came
    down, a press that took more than 2 s to arrive is dropped (`"late": true`): it was meant for a screen
    that is gone.
`POST /seat` `{"seat": number or null}`
    LAN mode: this phone plays that seat, or lets it go: gives what `/about` gives.
`POST /bots` `{}`
    Asks the table to fill the empty seats with bots.
`POST /seats/N/sign-in` `{"player": "12345678" or null}`
    Demo, on this machine: a KI number, or a new one, takes the seat: `{"player", "name", "points",
    "unverified"}`.
`POST /ki` `{"running": bool}`
    Demo, on this machine: stops or starts the KI.

A refusal is `{"error": words}` with a fitting status, and the words may be shown as they are. A POST has an
`Origin` that is ours, `Content-Type: application/json`, and at most 4 KiB.
"""
