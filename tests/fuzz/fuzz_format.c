/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes as a format and checks it by the rules of tests/property/format_rules.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "property/format_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct format_trial trial;
    struct formats pool = {0};
    const struct format *f;
    size_t n = size < sizeof trial.text ? size : sizeof trial.text - 1;
    memcpy(trial.text, data, n);
    trial.text[n] = '\0';
    trial.wrong[0] = '\0';
    bool ok = trial_parse(&trial, &pool, &f);
    formats_deinit(&pool);
    if (!ok) {
        fprintf(stderr, "%s: %s\n", trial.text, trial.wrong);
        abort();
    }
    return 0;
}
