"""Pools that are refused."""

from functools import partial

from eldgr_dspy.errors import PoolError
from tests.refusing import refused as refused_by

refused = partial(refused_by, kind=PoolError)
