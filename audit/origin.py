"""Which code gave a figure, and when: kept with it, so that an old one is never taken for a new one."""

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "audit.md"


@dataclass(frozen=True)
class Origin:
    """Where figures come from.

    Attributes:
        commit: The commit that was checked out, shortened; "no repository" if there is none.
        date: The day, in UTC.
        edited: Whether a file of the repository was not as in that commit; the page that is written of it does not count.
    """

    commit: str
    date: str
    edited: bool

    @classmethod
    def here(cls, root: Path = ROOT) -> "Origin":
        """That of a part that runs now."""
        page = PAGE.relative_to(ROOT)
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){page}")
        return cls(
            _git(root, "rev-parse", "--short=10", "HEAD") or "no repository",
            datetime.now(UTC).date().isoformat(),
            bool(changed),
        )


def _git(root: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments],  # noqa: S607  # whichever git the developer has
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip()
