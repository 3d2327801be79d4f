"""Many short boxes at once, one in twenty hostile: every answer is right, every ending is explained, and nothing is left."""

from benchmarks.sandbox_load import load
from benchmarks.sandbox_server import Holdings, ServerFailed, sandbox_server
from journeyman.testing.missing import missing

NUM_BOXES, CONCURRENCY = 200, 32


async def test_a_load_with_hostile_boxes_gives_right_answers_and_leaves_nothing() -> None:
    try:
        async with sandbox_server() as server:
            outcome = await load(server, NUM_BOXES, CONCURRENCY)
    except ServerFailed as error:
        missing(str(error))
    assert outcome.failed == ()
    assert outcome.wrong == ()
    assert outcome.left == Holdings(processes=0, mounts=0, groups=0, open_files=0)
    assert len(outcome.seconds) == NUM_BOXES - NUM_BOXES // 20
