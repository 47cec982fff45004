/* SPDX-License-Identifier: Apache-2.0 */
/* Plays the bytes as a case of tests/property/play.h: a segment, a view of it, and operations on
 * the view. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "property/play.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play play;
    struct choices from = {.bytes = data, .n = size};
    bool ok = play_case(&play, &from);
    play_deinit(&play);
    if (!ok) {
        fprintf(stderr, "%s: %s\n", play.wrong, play.c.story.text);
        abort();
    }
    return 0;
}
