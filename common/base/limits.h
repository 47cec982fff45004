/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit on what crosses the socket, with its reason. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

#include <shmview/layout.h>
#include <shmview/view.h>

/* A request: a layout of LIMIT_VIEWS views of 8 dimensions fits with room to spare. */
#define LIMIT_REQUEST_BYTES (1024 * 1024)
/* A reply: List of everything; the client's guard against a mad daemon. */
#define LIMIT_REPLY_BYTES (256 * 1024 * 1024)
#define LIMIT_JSON_DEPTH  64 /* requests never go past 8 */
/* Objects, arrays, numbers and so on of one request: making them takes the daemon's loop much
 * longer than reading their bytes. Each view of a layout has at most 32 (itself, a name, a format,
 * an offset, a flag, and three arrays of 8 numbers), each attachment that a claim names has 2, and
 * around those there are at most 16. */
#define LIMIT_JSON_VALUES     (LIMIT_VIEWS * 32 + 64)
#define LIMIT_NAME_BYTES      128 /* a segment's name; fits NAME_MAX with prefix and suffix */
#define LIMIT_VIEW_NAME_BYTES 64  /* a layout's or a view's name */
#define LIMIT_VIEWS           256 /* views of one layout */
#define LIMIT_LAYOUTS         64 /* layouts of one segment: its control object has as many entries */
#define LIMIT_SEGMENT_BYTES   ((uint64_t)1 << 56) /* far beyond memory, far from overflow */
#define LIMIT_WATCHES         64            /* of one segment: their sockets ride on one message */
#define LIMIT_ATTACHMENTS     4096          /* of one connection */
#define LIMIT_NAMES           64            /* segments that a question names */
#define LIMIT_MONITORS        64            /* connections that hear of events: bits of a word */
#define LIMIT_DESCRIPTORS     LIMIT_WATCHES /* far below the kernel's 253 */
#define LIMIT_FORMAT_BYTES    (SHMVIEW_FORMAT_BYTES - 1) /* of text a peer may send as a format */
#define LIMIT_FORMAT_NODES    64 /* components of a format, structs among them */
#define LIMIT_FORMAT_DEPTH    8  /* of structs in structs */
#define LIMIT_ACL_ENTRIES     32 /* users and groups of one segment: 8 bytes each */
/* Requests that are not whole yet and replies that are not read yet, of one user. */
#define LIMIT_BUFFERS_BYTES ((uint64_t)64 << 20)

/* How long requests of a client that has gone may wait for their rate. */
#define LIMIT_LAST_REQUESTS_NS ((int64_t)10000000000)

/* Of the configuration: far more than people write, little enough to read while serving. */
#define LIMIT_CONFIG_BYTES    (4 * 1024 * 1024) /* of one file */
#define LIMIT_CONFIG_FILES    256               /* in the directory */
#define LIMIT_CONFIG_SEGMENTS 4096              /* declared */
#define LIMIT_CONFIG_PEOPLE   1024              /* users and groups that may create */
#define LIMIT_CONFIG_ERRORS   40                /* told; the rest are counted */
#define LIMIT_CONFIG_COUNT    1000000000        /* any quota that is no number of bytes */

#endif
