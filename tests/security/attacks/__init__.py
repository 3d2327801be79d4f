"""All attacks, by kind."""

from tests.security.attack import Attack
from tests.security.attacks import boxes, endings, files, host, interpreter, kernel, resources

ATTACKS: tuple[Attack, ...] = (
    *resources.ATTACKS,
    *endings.ATTACKS,
    *host.ATTACKS,
    *kernel.ATTACKS,
    *files.ATTACKS,
    *boxes.ATTACKS,
    *interpreter.ATTACKS,
)
