"""How the sums of all groups are cut into chunks that travel as rows of a few kilobytes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Chunks of a matrix with one row for each group: its values, and behind them its total.

    A chunk is some whole groups; or, where one group has more integers than a chunk, a piece of one group.

    Attributes:
        groups: How many groups there are.
        width: How many values a group has, without its total.
        most_cells: How many integers a chunk has at most.
    """

    groups: int
    width: int
    most_cells: int

    @property
    def columns(self) -> int:
        """Values and total."""
        return self.width + 1

    @property
    def groups_at_once(self) -> int:
        """How many groups a chunk has."""
        return max(1, self.most_cells // self.columns)

    @property
    def columns_at_once(self) -> int:
        """How many columns a chunk has."""
        return min(self.columns, self.most_cells)

    @property
    def pieces(self) -> int:
        """How many chunks stand side by side."""
        return -(-self.columns // self.columns_at_once)

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.groups // self.groups_at_once) * self.pieces

    @property
    def bytes(self) -> int:
        """How large all sums are."""
        return 8 * self.groups * self.columns

    def place(self, chunk: int) -> tuple[slice, slice]:
        """(its groups, its columns)."""
        block, piece = divmod(chunk, self.pieces)
        first, left = block * self.groups_at_once, piece * self.columns_at_once
        return (
            slice(first, min(first + self.groups_at_once, self.groups)),
            slice(left, min(left + self.columns_at_once, self.columns)),
        )
