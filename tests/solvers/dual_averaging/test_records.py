"""The memory of the records: zeros of the right shape, on borders of cache lines, whatever the number of coordinates."""

import numpy as np
import pytest

from spdsl.solvers.dual_averaging.records import copied, empty_records


@pytest.mark.parametrize("d", [1, 7, 2047, 2048, 70_000, 200_000])
def test_no_record_straddles_two_cache_lines(d: int) -> None:
    records = empty_records(d)
    assert records.shape == (d, 4)
    assert records.flags.c_contiguous
    assert not records.any()
    assert records.ctypes.data % 64 == 0
    records[-1] = 1.0, -np.nan, 2.0, np.inf
    again = copied(records)
    assert again.tobytes() == records.tobytes()
    assert again.ctypes.data % 64 == 0
    assert again.base is not records.base
