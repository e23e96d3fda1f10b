"""All readers under attack."""

from audit.fuzzing import commands, ledgers, protocols, sketches, tables
from audit.fuzzing.verdicts import Target

TARGETS: tuple[Target, ...] = (
    *protocols.TARGETS,
    *sketches.TARGETS,
    *ledgers.TARGETS,
    *tables.TARGETS,
    *commands.TARGETS,
)
BY_NAME = {target.name: target for target in TARGETS}
