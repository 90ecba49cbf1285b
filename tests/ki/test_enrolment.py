"""The table's codes: one at a time, shown once the KI waits for it, thrown away after ten minutes."""

from __future__ import annotations

import random

from heek.clock import SECOND
from heek.ki.claim import CODE_LETTERS, LETTERS, LIFETIME, NONCE_BYTES
from heek.ki.enrolment import Enrolment


def test_a_code_is_shown_once_the_ki_waits_for_it_and_no_longer_than_it_is_good() -> None:
    """Before, an operator would be told that no table shows it; afterwards too."""
    enrolment = Enrolment(random.Random(1).randrange)
    attempt = enrolment.attempt(5)
    assert enrolment.shown(5) is None
    attempt.heard = True
    assert enrolment.shown(5) == attempt.code
    assert enrolment.shown(5 + LIFETIME - 1) == attempt.code
    assert enrolment.shown(5 + LIFETIME) is None
    assert (enrolment.is_old(5 + LIFETIME - 1), enrolment.is_old(5 + LIFETIME)) == (False, True)


def test_an_old_code_is_followed_by_another_one_with_another_nonce() -> None:
    """Asked again in its time it is the same; then nothing of it is used again."""
    enrolment = Enrolment(random.Random(1).randrange)
    first = enrolment.attempt(0)
    assert enrolment.attempt(LIFETIME - SECOND) is first
    second = enrolment.attempt(LIFETIME)
    assert (second.code == first.code, second.nonce == first.nonce) == (False, False)
    assert (len(second.code), set(second.code) <= set(LETTERS)) == (CODE_LETTERS, True)
    assert (len(second.nonce), second.key, second.heard) == (NONCE_BYTES, None, False)
    enrolment.over()
    assert (enrolment.shown(LIFETIME), enrolment.is_old(9 * LIFETIME)) == (None, False)
