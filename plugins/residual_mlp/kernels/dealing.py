"""How rows of a matrix without padding are dealt to the lanes of a warp, so that their loads meet in few banks of shared memory."""

from collections import Counter


def dealt(depth: int, pitch: int) -> int:
    """How many rows of K are dealt at a time, a quarter of them side by side to each lane t, so that few 2-byte loads meet in a bank.

    Rows have `pitch` halves and follow each other without padding. A load takes eight neighbours of one row for each of the four t; with 16
    rows at a time and a pitch of 111 they meet four deep, with 64 not at all.
    """

    def cost(size: int) -> int:
        rest = depth % size
        return depth // size * size * meeting(size, pitch) + rest * (meeting(rest, pitch) if rest else 0)

    return min((size for size in (64, 48, 32, 16) if size <= depth), key=cost)


def meeting(size: int, pitch: int) -> int:
    """The most words in one of the 32 banks that such a load wants, wherever it begins."""
    deepest = 0
    for begin in range(2):
        words = {(begin + size // 4 * t * pitch + g) // 2 for t in range(4) for g in range(8)}
        deepest = max(deepest, *Counter(word % 32 for word in words).values())
    return deepest
