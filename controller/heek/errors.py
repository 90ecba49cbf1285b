"""Every error the table raises, one line each.

The text of an error names the thing, says what is wrong with it and what to do about it; it is
shown to people as it is, without a traceback.
"""

from __future__ import annotations


class TableError(Exception):
    """Root of all errors that this package raises on purpose."""


class ConfigError(TableError, ValueError):
    """The configuration has mistakes; the text lists all of them, one a line."""


class IllegalTransition(TableError, RuntimeError):
    """The session was asked for a change of phase that its table does not hold."""


class IllegalAction(TableError, ValueError):
    """A game was given an action that its state does not allow."""


class BackendError(TableError, RuntimeError):
    """The pin backend that is configured cannot be opened."""


class PanelError(TableError, OSError):
    """The OLED does not answer, or is not there."""


class JournalError(TableError, OSError):
    """The journal cannot be opened, read or written."""


class JournalUnwritable(JournalError):
    """The card, or its folder, does not take what is to be kept; what is there is as it was."""


class JournalEmpty(JournalError):
    """There is a file, and nothing of a journal in it."""


class JournalDamaged(JournalError):
    """What the journal's file holds cannot be right, or what was there is gone."""


class BatchRefused(JournalError, ValueError):
    """The journal was given a batch that it can never keep: a gap in the numbers, a match twice."""


class RecordingError(TableError, ValueError):
    """A recording of a match is damaged, incomplete, another version's or not there."""


class RecordError(TableError, ValueError):
    """A record, envelope or answer of the KI is not what it should be; the text goes after its name."""


class LinkError(TableError, ConnectionError):
    """The link to the KI brought no answer; `retry_s` is when to ask again, if the other end said so."""

    retry_s: float | None = None


class LinkTooSlow(LinkError):
    """The link brought no whole answer in the time that a question has; it may have been acted on."""


class KeyFileError(TableError, OSError):
    """A file with a secret, such as the table's signing key, cannot be read, made or trusted."""


class CarriedFileError(TableError, OSError):
    """A file that carries records by hand cannot be read or written, or is not what it should be."""


class PageError(TableError, OSError):
    """The table's page cannot be served at the address that is configured."""


class PageRefusal(TableError):
    """The page's server does not do what a request asks; the text is told to whoever asked.

    `status` is HTTP's number for it, `retry_s` when to ask again, if that helps.
    """

    def __init__(self, status: int, text: str, retry_s: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_s = retry_s


class RankingError(TableError, OSError):
    """The KI cannot listen at its address, or cannot open, read or write its ledger."""


class RankingRefusal(TableError):
    """The KI does not do what a whole request asks; the text is told to whoever asked.

    `code` is one of `heek.ki.answers.STATUSES`, `retry_s` when to ask again, if that helps.
    """

    def __init__(self, code: str, text: str, retry_s: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.retry_s = retry_s


class StoryError(TableError, ValueError):
    """A story is not valid; the text names the file, the line and the mistake."""


class DocumentsError(TableError, RuntimeError):
    """Generated documents differ from what is committed."""
