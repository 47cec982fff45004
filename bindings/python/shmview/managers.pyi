# SPDX-License-Identifier: Apache-2.0
from multiprocessing.managers import BaseManager
from typing import Iterable

from .shared_memory import ShareableList as ShareableList, SharedMemory as _SharedMemory, _T

__all__ = ["SharedMemoryManager"]

class SharedMemoryManager(BaseManager):
    def SharedMemory(self, size: int) -> _SharedMemory: ...
    def ShareableList(self, sequence: Iterable[_T]) -> ShareableList[_T]: ...
