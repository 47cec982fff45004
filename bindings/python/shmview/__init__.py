# SPDX-License-Identifier: Apache-2.0
"""Named shared-memory segments with a lock and typed views."""

from ._core import Connection, Guard, Segment, remove
from ._core import version as __version__
from ._errors import *  # noqa: F401,F403
from ._open import attach, connect, create
from ._types import LockParty, LockStatus
