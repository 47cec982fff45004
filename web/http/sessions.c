/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "web/http/check.h"

/* Returns 0 or a negative errno. */
static int make_secret(char ret[SESSION_BYTES])
{
    unsigned char random[(SESSION_BYTES - 1) / 2];
    ssize_t n = getrandom(random, sizeof random, 0);
    if (n != (ssize_t)sizeof random)
        return n < 0 ? -errno : -EIO;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(ret + 2 * i, 3, "%02x", random[i]);
    return 0;
}

int sessions_init(struct sessions *s)
{
    *s = (struct sessions){.next = 0};
    pthread_mutex_init(&s->mutex, NULL);
    return make_secret(s->token);
}

void sessions_deinit(struct sessions *s)
{
    pthread_mutex_destroy(&s->mutex);
}

void sessions_token(struct sessions *s, char ret[SESSION_BYTES])
{
    pthread_mutex_lock(&s->mutex);
    memcpy(ret, s->token, SESSION_BYTES);
    pthread_mutex_unlock(&s->mutex);
}

/* Returns the index of a cookie, or LIMIT_SESSIONS. Compares with all of them, so that the time
 * depends on none. The caller holds the mutex. */
static size_t find(const struct sessions *s, const char *cookie)
{
    size_t found = LIMIT_SESSIONS;
    for (size_t i = 0; cookie && i < LIMIT_SESSIONS; i++)
        if (s->cookies[i][0] && check_equal(s->cookies[i], cookie))
            found = i;
    return found;
}

bool sessions_exchange(struct sessions *s, const char *token, const char *old,
                       char ret_cookie[SESSION_BYTES])
{
    char new_token[SESSION_BYTES], cookie[SESSION_BYTES];
    pthread_mutex_lock(&s->mutex);
    bool is_valid =
        check_equal(s->token, token) && make_secret(new_token) == 0 && make_secret(cookie) == 0;
    if (is_valid) {
        size_t place = find(s, old);
        if (place == LIMIT_SESSIONS) {
            place = s->next;
            s->next = (s->next + 1) % LIMIT_SESSIONS;
        }
        memcpy(s->token, new_token, SESSION_BYTES);
        memcpy(s->cookies[place], cookie, SESSION_BYTES);
        memcpy(ret_cookie, cookie, SESSION_BYTES);
    }
    pthread_mutex_unlock(&s->mutex);
    return is_valid;
}

bool sessions_has(struct sessions *s, const char *cookie)
{
    pthread_mutex_lock(&s->mutex);
    bool is_there = find(s, cookie) < LIMIT_SESSIONS;
    pthread_mutex_unlock(&s->mutex);
    return is_there;
}
