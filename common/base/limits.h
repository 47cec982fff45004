/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit of the protocol, with its reason. Daemon and library share them, so that both refuse
 * the same requests. No configuration changes them. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

#include <shmview/layout.h>
#include <shmview/view.h>

/* Of one request. A layout of LIMIT_VIEWS views with 8 dimensions fits, if their formats have some
 * 300 bytes each. To record a longer layout would take more than 1 ms of the daemon's loop. */
#define LIMIT_REQUEST_BYTES (256 * 1024)
/* Of one reply. List can be long; the limit protects a client from a daemon that has gone wrong. */
#define LIMIT_REPLY_BYTES (256 * 1024 * 1024)
#define LIMIT_JSON_DEPTH  64 /* valid requests need at most 8 */
/* The weight of the values in one request, which stands for the time in which the daemon's loop
 * makes them. An integer, true, false and null weigh 1, a string, an array and an object 2, a
 * number with a fraction or an exponent 4; the name of a member adds 2. A view of a layout weighs
 * at most 54: itself, 7 names, a name, a format, an offset, a flag, and three arrays of 8 integers.
 * An attachment in a claim weighs 1. All other values of these requests weigh less than 64. */
#define LIMIT_JSON_WEIGHT     (LIMIT_VIEWS * 54 + 64)
#define LIMIT_NAME_BYTES      128 /* of a segment; fits into NAME_MAX */
#define LIMIT_LABEL_BYTES     63  /* of the label of a segment */
#define LIMIT_VIEW_NAME_BYTES 64  /* of a layout or a view */
#define LIMIT_VIEWS           256 /* views of one layout */
#define LIMIT_LAYOUTS         64  /* layouts of one segment, as its control object has entries */
/* Of the text of all layouts in the reply to Attach. If there is more, the reply has their names,
 * so that many views make no attachment slow. */
#define LIMIT_ATTACHED_BYTES 4096
/* Of the text of layouts in one reply to Describe, unless one layout alone is longer: some 100 us
 * of the daemon's loop. */
#define LIMIT_DESCRIBED_BYTES (64 * 1024)
#define LIMIT_SEGMENT_BYTES   ((uint64_t)1 << 56) /* far above any memory, far below overflow */
#define LIMIT_WATCHES         64   /* of one segment: one message carries all their sockets */
#define LIMIT_ATTACHMENTS     4096 /* of one connection */
#define LIMIT_NAMES           64   /* names of segments in one request */
#define LIMIT_MONITORS        64   /* connections: each one is a bit of a word */
#define LIMIT_DESCRIPTORS     LIMIT_WATCHES              /* of one message; the kernel allows 253 */
#define LIMIT_FORMAT_BYTES    (SHMVIEW_FORMAT_BYTES - 1) /* of the text of a format */
#define LIMIT_FORMAT_NODES    64 /* components of a format, structs among them */
#define LIMIT_FORMAT_DEPTH    8  /* of structs in structs */
#define LIMIT_NODE            62 /* of memory: a set of nodes is the bits of a positive int64_t */
#define LIMIT_ACL_ENTRIES     32 /* users and groups of one segment: 8 bytes each */
/* Of incomplete requests and unread replies of one user, which the daemon keeps. */
#define LIMIT_BUFFERS_BYTES ((uint64_t)64 << 20)

/* How long the last requests of a client that has hung up may wait because of their rate. */
#define LIMIT_LAST_REQUESTS_NS ((int64_t)10000000000)

/* Of the configuration: far more than people write, little enough to read quickly. */
#define LIMIT_CONFIG_BYTES    (4 * 1024 * 1024) /* of one file */
#define LIMIT_CONFIG_FILES    256               /* files in the directory */
#define LIMIT_CONFIG_SEGMENTS 4096              /* declared */
#define LIMIT_CONFIG_PEOPLE   1024              /* users and groups in "create" */
#define LIMIT_CONFIG_ERRORS   40                /* reported; the others are counted */
#define LIMIT_CONFIG_COUNT    1000000000        /* of a quota that is not in bytes */

#endif
