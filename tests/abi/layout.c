/* SPDX-License-Identifier: Apache-2.0 */
/* Names the structs that lie in shared memory, so that their layouts are in the debugging
 * information from which the baseline is made. */
#include <shmview/layout.h>
#include <shmview/mutex_layout.h>
#include <shmview/stream_layout.h>

struct shmview_object_header object_header;
struct shmview_slot slot;
struct shmview_control control;
struct shmview_liveness liveness;
struct shmview_mutex mutex;
struct shmview_stream_header stream_header;
struct shmview_stream_stage stream_stage;
struct shmview_stream_slot stream_slot;
