# SPDX-License-Identifier: Apache-2.0
from shmview.shmview cimport *
