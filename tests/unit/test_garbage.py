"""Pauses of the garbage collector."""

import gc

from pyrelay.garbage import uncollected


def test_the_collector_runs_again_after_the_outermost_pause():
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_a_pause_leaves_counts_as_old_and_is_still_collected():
    with uncollected():
        kept = [[]]
        kept[0].append(kept)
    assert any(each is kept for each in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0
    del kept
    assert gc.collect() >= 2


def test_what_the_user_has_frozen_stays_frozen():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with uncollected():
            pass
        assert 0 < gc.get_freeze_count() <= count  # references that are gone free some
    finally:
        gc.unfreeze()
