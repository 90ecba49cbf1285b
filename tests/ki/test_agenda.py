"""What a table asks next: for a pin first, then its results and how things stand; never without an end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heek.ki.agenda import Agenda, Ask


def test_where_first_sight_counts_a_table_introduces_itself() -> None:
    """Then it reports what waits, and asks how things stand when nothing does."""
    agenda = Agenda(first_sight=True)
    assert agenda.next(waiting=True) is Ask.INTRODUCTION
    agenda.introduced()
    assert agenda.next(waiting=True) is Ask.RECORDS
    assert agenda.next(waiting=False) is Ask.SYNC


def test_anywhere_else_it_claims_and_says_nothing_of_results_before() -> None:
    """A code, until an operator has typed one in; the next code when one is old."""
    agenda = Agenda(first_sight=False)
    assert agenda.next(waiting=True) is Ask.CLAIM
    agenda.code_is_old()
    assert agenda.next(waiting=True) is Ask.CLAIM
    agenda.enrolled()
    assert (agenda.next(waiting=True), agenda.claiming) == (Ask.RECORDS, False)


def test_a_ki_that_takes_nobody_at_first_sight_is_shown_a_code() -> None:
    """The introduction is refused: the claim follows at once."""
    agenda = Agenda(first_sight=True)
    agenda.next(waiting=False)
    assert agenda.refused(Ask.INTRODUCTION, "not_enrolled")
    assert agenda.next(waiting=False) is Ask.CLAIM
    assert not agenda.refused(Ask.CLAIM, "not_enrolled")
    assert not agenda.refused(Ask.CLAIM, "busy")


def test_a_ki_that_has_forgotten_the_table_is_introduced_to_it_again_once() -> None:
    """Twice in a row without a report between is a failure, and the next try comes after a pause."""
    agenda = Agenda(first_sight=False, pinned=True)
    for _ in range(3):
        assert agenda.next(waiting=True) is Ask.RECORDS
        assert agenda.refused(Ask.RECORDS, "unknown_table")
        assert agenda.next(waiting=True) is Ask.INTRODUCTION
        agenda.introduced()
        assert agenda.next(waiting=True) is Ask.RECORDS
        assert not agenda.refused(Ask.RECORDS, "unknown_table")
    assert agenda.refused(Ask.SYNC, "unknown_table")
    agenda.failed(Ask.INTRODUCTION)
    assert agenda.next(waiting=False) is Ask.SYNC


def test_a_code_that_nobody_wants_any_more_is_not_shown_for_ever() -> None:
    """With a pin the table asks as usual when a code is old: the refusal may have been a false one."""
    agenda = Agenda(first_sight=False, pinned=True)
    assert agenda.refused(Ask.SYNC, "not_enrolled")
    assert agenda.next(waiting=True) is Ask.CLAIM
    agenda.code_is_old()
    assert agenda.next(waiting=True) is Ask.RECORDS


def test_a_false_refusal_holds_no_table_up_until_its_code_is_old() -> None:
    """With a pin it asks how things stand after each five claims; an answer ends it, a no does not."""
    agenda = Agenda(first_sight=False, pinned=True)
    assert agenda.refused(Ask.RECORDS, "not_enrolled")
    assert [agenda.next(waiting=True) for _ in range(6)] == [*[Ask.CLAIM] * 5, Ask.SYNC]
    assert agenda.refused(Ask.SYNC, "not_enrolled")
    assert [agenda.next(waiting=True) for _ in range(6)] == [*[Ask.CLAIM] * 5, Ask.SYNC]
    agenda.reported()
    assert (agenda.claiming, agenda.next(waiting=True)) == (False, Ask.RECORDS)
    stranger = Agenda(first_sight=False)
    assert {stranger.next(waiting=True) for _ in range(20)} == {Ask.CLAIM}


@given(
    st.booleans(),
    st.booleans(),
    st.lists(
        st.sampled_from(["unknown_table", "not_enrolled", "busy", "malformed", "too_large"]), max_size=40
    ),
)
def test_no_ki_is_asked_without_a_pause_for_ever(first_sight: bool, pinned: bool, codes: list[str]) -> None:
    """Whatever it refuses and however often, at most two questions follow each other at once."""
    agenda = Agenda(first_sight=first_sight, pinned=pinned)
    at_once = 0
    for code in codes:
        asked = agenda.next(waiting=True)
        assert (asked in (Ask.RECORDS, Ask.SYNC)) <= agenda.pinned
        if agenda.refused(asked, code):
            at_once += 1
        else:
            agenda.failed(asked)
            at_once = 0
        assert at_once <= 2
