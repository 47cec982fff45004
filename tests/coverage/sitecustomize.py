# SPDX-License-Identifier: Apache-2.0
"""In the Python folder of the preset `coverage`: if $COVERAGE_PROCESS_START names a configuration, each Python process
counts, and a forked child that ends by os._exit() writes its counters first."""

import os


def _count():
    try:
        import coverage
    except ImportError:
        return  # another interpreter than Debian's
    counters, leave = coverage.process_startup(), os._exit

    def write_and_leave(status):
        try:
            counters.save()
        finally:
            leave(status)

    os._exit = write_and_leave


if "COVERAGE_PROCESS_START" in os.environ:
    _count()
