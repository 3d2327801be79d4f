"""Which members of a group are alike, so that each distinct one is judged once. Called in the grader process."""

from collections.abc import Hashable, Sequence

from journeyman.records import Trajectory


def evidence_key(trajectory: Trajectory) -> Hashable:
    """Everything of a trajectory that a ladder may look at: what was said, called and seen, and the outcome; not tokens, not times."""
    steps = tuple((step.text, step.call, step.observation) for step in trajectory.steps)
    return (steps, trajectory.response, trajectory.final_files, trajectory.ending, trajectory.attribution)


def number_alike(trajectories: Sequence[Trajectory]) -> tuple[list[int], list[int]]:
    """For each trajectory the number of its kind, and for each kind the place of its first trajectory."""
    numbers: dict[Hashable, int] = {}
    kinds: list[int] = []
    firsts: list[int] = []
    for place, trajectory in enumerate(trajectories):
        kind = numbers.setdefault(evidence_key(trajectory), len(firsts))
        if kind == len(firsts):
            firsts.append(place)
        kinds.append(kind)
    return kinds, firsts
