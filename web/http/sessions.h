/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets with which browsers may see the page.
 *
 *   token   in the link that the program prints; one browser exchanges it for a cookie
 *   cookie  names a session, until the program ends or LIMIT_SESSIONS newer ones exist
 *
 * Both have 128 random bits. A used token is worth nothing, so that a link in a history, a log or
 * a screen shot lets nobody in; the program prints a new link each time. Any thread may call. */
#ifndef WEB_SESSIONS_H
#define WEB_SESSIONS_H

#include <pthread.h>

#include "web/base/base.h"

#define SESSION_BYTES 33 /* 32 hexadecimal digits and NUL */

struct sessions {
    pthread_mutex_t mutex;
    char token[SESSION_BYTES];
    char cookies[LIMIT_SESSIONS][SESSION_BYTES];
    size_t next; /* the oldest cookie, which the next one replaces */
};

/* Makes the first token. Returns 0 or a negative errno. The caller owes sessions_deinit(). */
int sessions_init(struct sessions *s);
void sessions_deinit(struct sessions *s);

/* Copies the token that is valid now. */
void sessions_token(struct sessions *s, char ret[SESSION_BYTES]);
/* Exchanges a token for a cookie. A cookie that the browser has already (NULL: none) is given up.
 * Returns whether the token was valid, which ends its validity. */
bool sessions_exchange(struct sessions *s, const char *token, const char *old,
                       char ret_cookie[SESSION_BYTES]);
/* Whether the cookie names a session. cookie may be NULL. */
bool sessions_has(struct sessions *s, const char *cookie);

#endif
