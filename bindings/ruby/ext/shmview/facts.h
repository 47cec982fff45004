/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - Ruby objects for the facts that the daemon reports: times, names, numbers of an enum.
 */
#ifndef FACTS_H
#define FACTS_H

#include "core.h"

/* Returns microseconds of CLOCK_REALTIME as a Time; nil if they are not known. */
static inline VALUE time_of(int64_t us)
{
    return us > 0 ? rb_time_nano_new((time_t)(us / 1000000), (long)(us % 1000000 * 1000)) : Qnil;
}

/* Returns text as a String; nil if it is "". */
static inline VALUE text_or_nil(const char *text)
{
    return text[0] ? text_of(text) : Qnil;
}

/* Return the Symbol of an enum shmview_access, of a mode of the lock, of an enum
 * shmview_lifetime, and of an enum shmview_backing; nil for any other number. */
static inline VALUE symbol_of(const char *const *names, size_t n, uint32_t i)
{
    return i > 0 && i <= n ? ID2SYM(rb_intern(names[i - 1])) : Qnil;
}
static inline VALUE access_of(uint32_t access)
{
    static const char *const names[] = {"peek", "read", "write"};
    return symbol_of(names, 3, access);
}
static inline VALUE mode_of(uint32_t mode)
{
    static const char *const names[] = {"exclusive", "shared"};
    return symbol_of(names, 2, mode);
}
static inline VALUE lifetime_of(uint32_t lifetime)
{
    static const char *const names[] = {"attached", "manual", "creator"};
    return symbol_of(names, 3, lifetime);
}
static inline VALUE backing_of(uint32_t backing)
{
    static const char *const names[] = {"file", "sealed"};
    return symbol_of(names, 2, backing);
}
static inline VALUE frozen_of(uint32_t frozen)
{
    static const char *const names[] = {"future", "all"};
    return symbol_of(names, 2, frozen);
}

#endif
