/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers of the page's server that requests reach: slices, hosts and origins; and its JSON, of
 * which names, labels and commands of other programs become a part. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "web/base/text.h"
#include "web/http/check.h"
#include "web/memory/look.h"

#define TEXT_BYTES 1024

static void expect(bool is_right)
{
    if (!is_right)
        abort();
}

/* Every element of a slice lies inside the segment. */
static void slice(const char *text)
{
    static unsigned char bytes[240];
    const int64_t shape[] = {4, 5, 3};
    const struct shmview_view_spec spec = {.format = "uint32", .ndim = 3, .shape = shape};
    struct shmview_segment *segment;
    struct shmview_view v;
    char error[256] = "";
    if (shmview_wrap(bytes, sizeof bytes, 0, NULL, NULL, &segment))
        return;
    expect(shmview_view_make(segment, &spec, &v) == 0);
    int r = look_slice(&v, text, error, sizeof error);
    expect(r == 0 || r < 0 || error[0]);
    if (r == 0 && v.nbytes) {
        ptrdiff_t last[SHMVIEW_MAX_NDIM];
        for (uint32_t d = 0; d < v.ndim; d++)
            last[d] = v.shape[d] - 1;
        const unsigned char *ends[] = {v.data, shmview_at(&v, last)};
        for (size_t i = 0; i < 2; i++)
            expect(ends[i] >= bytes && ends[i] + v.itemsize <= bytes + sizeof bytes);
    }
    shmview_detach(segment);
}

/* What names this machine begins with one of its names. An origin is longer than its host. */
static void headers(const char *text)
{
    const char *rest = strchr(text, '\n');
    char host[TEXT_BYTES] = "";
    if (rest)
        memcpy(host, text, (size_t)(rest++ - text));
    if (check_host(text, NULL))
        expect(strspn(text, "[]:.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
               strlen(text));
    if (check_origin(rest, host))
        expect(strlen(rest) > strlen(host));
    if (check_frame(text, NULL))
        expect(!strpbrk(text, " ;,'*\"<>") && strncmp(text, "http://", 7) == 0);
    check_fetch_site(text);
    expect(check_equal(text, text));
}

/* Any bytes become one valid JSON string without markup. */
static void json(const char *bytes, size_t n)
{
    CLEANUP_TEXT struct text t = {.bytes = NULL};
    text_json_n(&t, bytes, n);
    expect(!t.failed && !memchr(t.bytes, '<', t.n) && !memchr(t.bytes, '\n', t.n));
    json_t *value = json_loadb(t.bytes, t.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    expect(json_is_string(value));
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_BYTES] = "";
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    slice(text);
    headers(text);
    json(text, size);
    return 0;
}
