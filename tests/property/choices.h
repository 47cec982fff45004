/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a case's choices: a string of bytes. A random generator, a fuzzer and a line on the
 * terminal can therefore all describe the same case. Past its end every byte is 0, and 0 always
 * selects the plainest choice, so a shorter string is a simpler case. */
#ifndef PROPERTY_CHOICES_H
#define PROPERTY_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choices {
    const uint8_t *bytes;
    size_t n, at;
};

static inline uint8_t choose_byte(struct choices *from)
{
    return from->at < from->n ? from->bytes[from->at++] : 0;
}

static inline uint64_t choose_word(struct choices *from)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 8 | choose_byte(from);
    return word;
}

/* Returns one of low, low + 1, ..., high; at most 256 of them. */
static inline int64_t choose(struct choices *from, int64_t low, int64_t high)
{
    return low + choose_byte(from) % (high - low + 1);
}

/* Returns true about once in n times. */
static inline bool choose_rarely(struct choices *from, int n)
{
    return choose_byte(from) % n == n - 1;
}

#endif
