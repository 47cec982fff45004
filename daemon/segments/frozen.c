/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/frozen.h"

#include <fcntl.h>

#include <shmview/freeze.h>

#include "common/base/linux.h"
#include "daemon/segments/segment.h"

uint32_t segment_frozen(const struct segment *segment)
{
    struct object object;
    if (!segment->sealed || !segment->inodes[DATA])
        return 0;
    segment_object(segment, DATA, &object);
    int seals = object_seals(&object);
    if (seals < 0)
        return 0;
    return seals & F_SEAL_WRITE          ? SHMVIEW_FROZEN_ALL
           : seals & F_SEAL_FUTURE_WRITE ? SHMVIEW_FROZEN_FUTURE
                                         : 0;
}
