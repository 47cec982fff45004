/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http/check.h"

#include <string.h>
#include <strings.h>

/* Whether host is name, or name with a port of 1 to 5 digits. */
static bool is_name(const char *host, const char *name)
{
    size_t n = strlen(name);
    if (strncasecmp(host, name, n) != 0)
        return false;
    if (!host[n])
        return true;
    size_t digits = host[n] == ':' ? strspn(host + n + 1, "0123456789") : 0;
    return digits >= 1 && digits <= 5 && !host[n + 1 + digits];
}

bool check_host(const char *host, const char *extra)
{
    return host && (is_name(host, "localhost") || is_name(host, "127.0.0.1") ||
                    is_name(host, "[::1]") || (extra && extra[0] && is_name(host, extra)));
}

bool check_origin(const char *origin, const char *host)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; origin && host && i < ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (strncmp(origin, schemes[i], n) == 0 && strcasecmp(origin + n, host) == 0)
            return true;
    }
    return false;
}

bool check_frame(const char *origin, const char *extra)
{
    static const char plain[] = "http://", tls[] = "https://";
    if (strncmp(origin, plain, sizeof plain - 1) == 0)
        return check_host(origin + sizeof plain - 1, extra);
    return strncmp(origin, tls, sizeof tls - 1) == 0 && extra && extra[0] &&
           is_name(origin + sizeof tls - 1, extra);
}

bool check_fetch_site(const char *site)
{
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

bool check_equal(const char *a, const char *b)
{
    size_t n = strlen(a);
    volatile unsigned char differs = 0;
    if (strlen(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        differs = (unsigned char)(differs | (a[i] ^ b[i]));
    return !differs;
}
