"""What digests that differ mean: agreement, an offer, or a difference that no offer can mend."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.ki.settlement import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_WAITING,
    OfferPace,
    Settlement,
    compare,
    words,
)
from heek.ki.sync import NOTHING, digest

IDS = [bytes([1 << number] * 16) for number in range(8)]
"""No two sets of them have the same xor, as no two sets of random ids do."""
SETS = st.sets(st.sampled_from(IDS))


def test_the_same_on_both_sides_is_nothing_to_do() -> None:
    """Agreement ends an offer, and any difference that was settled."""
    ours = digest(IDS[:3])
    for before in (Settlement(), Settlement((2, b"x" * 16)), Settlement(NOTHING, digest(IDS))):
        compared = compare(before, ours, ours)
        assert (compared.after, compared.offer) == (Settlement(), False)


def test_what_the_ki_lacks_is_offered_and_never_put_off() -> None:
    """Fewer there than here is a loss; more there than here is not."""
    less = compare(Settlement(), digest(IDS[:2]), digest(IDS[:3]))
    assert (less.after.offered, less.offer, less.lost) == (digest(IDS[:2]), True, True)
    more = compare(Settlement(), digest(IDS[:4]), digest(IDS[:3]))
    assert (more.after.offered, more.offer, more.lost) == (digest(IDS[:4]), True, False)


@given(SETS, SETS)
def test_one_offer_ends_in_agreement_or_in_what_is_understood(theirs: set[bytes], ours: set[bytes]) -> None:
    """The KI takes what it lacks: what it has besides is settled, is said, and never leads to an offer."""
    compared = compare(Settlement(), digest(theirs), digest(ours))
    assert compared.offer == (theirs != ours)
    after = compared.after
    if compared.offer:
        # As the journal does with every answer: what is accepted is expected, what is there is ours.
        after = Settlement(after.settled, digest(theirs | ours))
    for _ in range(3):
        compared = compare(after, digest(theirs | ours), digest(ours))
        assert not compared.offer
        after = compared.after
    assert after == Settlement((len(theirs - ours), digest(theirs - ours)[1]))
    assert (words(after.settled) is None) == (theirs <= ours)


@given(SETS, SETS, SETS)
def test_a_ki_that_loses_more_in_the_offer_is_never_taken_for_settled(
    theirs: set[bytes], ours: set[bytes], lost: set[bytes]
) -> None:
    """What was accepted in the offer and is gone at its end leads to another offer, whatever else differs."""
    after = Settlement(NOTHING, digest(theirs | ours))
    left = (theirs | ours) - lost
    compared = compare(after, digest(left), digest(ours))
    assert compared.offer == (left != theirs | ours and left != ours)
    assert compared.lost == compared.offer


WAITING_IDS = [bytes([1 << number] * 8 + [255] * 8) for number in range(4)]


@given(SETS, SETS, st.sets(st.sampled_from(WAITING_IDS)), st.data())
def test_what_waits_may_be_at_the_ki_already_and_hides_nothing_else(
    theirs: set[bytes], ours: set[bytes], waiting: set[bytes], data: st.DataObject
) -> None:
    """Whatever of it the KI has taken is no difference; whatever else differs leads to an offer."""
    taken = data.draw(st.sets(st.sampled_from(sorted(waiting)))) if waiting else set()
    compared = compare(Settlement(), digest(theirs | taken), digest(ours), sorted(waiting))
    assert compared.offer == (theirs != ours)
    if compared.offer:
        # The offer ends but for what waits: the difference is told when that has its answer too.
        after = Settlement(NOTHING, digest(theirs | ours | taken))
        again = compare(after, digest(theirs | ours | taken), digest(ours), sorted(waiting))
        assert not again.offer
        last = compare(again.after, digest(theirs | ours | waiting), digest(ours | waiting))
        assert not (last.offer and taken == waiting)


def test_a_loss_is_seen_though_something_waits() -> None:
    """One match less than was answered for: that it may have one that waits does not make up for it."""
    waiting = [WAITING_IDS[0]]
    lost = compare(Settlement(), digest(IDS[:2]), digest(IDS[:3]), waiting)
    assert (lost.offer, lost.lost) == (True, True)
    instead = compare(Settlement(), digest([*IDS[:2], *waiting]), digest(IDS[:3]), waiting)
    assert instead.offer
    many = [bytes([number] * 16) for number in range(100, 100 + MOST_WAITING + 1)]
    assert compare(Settlement(), digest(IDS[:2]), digest(IDS[:3]), many) == lost
    # Of so many nothing else can be said: the KI may hold any of them instead.
    for theirs in (IDS[:3], IDS[:4], [*IDS[:2], IDS[4]]):
        assert not compare(Settlement(), digest(theirs), digest(IDS[:3]), many).offer


def test_a_settled_difference_that_changes_is_a_new_one() -> None:
    """Settled is this difference and no other."""
    settled = Settlement((1, IDS[5]))
    assert not compare(settled, digest([*IDS[:3], IDS[5]]), digest(IDS[:3])).offer
    assert compare(settled, digest([*IDS[:3], IDS[6]]), digest(IDS[:3])).offer


def test_offers_are_paced_and_a_loss_less_so() -> None:
    """At once, then a minute later, then after twice as long, up to an hour; a calm day ends that.

    A loss is made good after a sixth of that, and five minutes at the most: not without any pause, because
    a KI whose digest is wrong would be offered everything for ever.
    """
    pace, now, pauses, losses = OfferPace(), 0, [], []
    more = compare(Settlement(), digest(IDS[:2]), digest(IDS[:1]))
    less = compare(Settlement(), digest(IDS[:1]), digest(IDS[:2]))
    for _ in range(9):
        before = now
        while not pace.may(less, now):
            now += SECOND
        losses.append((now - before) // SECOND)
        while not pace.may(more, now):
            now += SECOND
        pauses.append((now - before) // SECOND)
        pace.begun(now)
    assert pauses == [0, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert losses == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    now += 24 * LONGEST_PAUSE
    pace.begun(now)
    assert not pace.may(more, now + FIRST_PAUSE - 1)
    assert pace.may(more, now + FIRST_PAUSE)


def test_a_difference_the_other_way_has_words_too() -> None:
    """One match, several, and what should not be."""
    assert (words((1, IDS[0])) or "").startswith("the KI holds 1 match of this table")
    assert (words((2, IDS[0])) or "").startswith("the KI holds 2 matches")
    assert "offering all of them again did not change that" in (words((-1, IDS[0])) or "")
