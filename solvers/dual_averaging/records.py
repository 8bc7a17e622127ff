"""Memory for the coordinates' records: on borders of cache lines, and on huge pages where it is large.

In: the number of coordinates, or records to copy. Out: a float64 array (d, 4). A record of 32 bytes that straddles two
cache lines is fetched twice. A step looks at records all over the array; on pages of 4 kB each look would also go
through the page tables, on one of 2 MB it seldom does.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array

__all__ = ["copied", "empty_records"]

_LINE, _PAGE = 64, 1 << 21
_ADVISED = 1 << 22  # NumPy asks for huge pages for blocks of 4 MB and more
_SMALL = 1 << 16  # so few bytes lie on a few pages whatever they are


def empty_records(d: int) -> Array:
    """Records (d, 4) of zeros.

    Untouched pages take no memory: a block that is larger than what is used of it costs address space alone.
    """
    size = 32 * d
    border = _LINE if size < _SMALL else _PAGE
    room = size + border if size < _SMALL else max(size + border, _ADVISED)
    block = np.zeros(room // 8 + 1)
    start = (-block.ctypes.data % border) // 8
    return block[start : start + 4 * d].reshape(d, 4)


def copied(records: Array) -> Array:
    """The same records, placed like those of `empty_records`."""
    placed = empty_records(len(records))
    placed[:] = records
    return placed
