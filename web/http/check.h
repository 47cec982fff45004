/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by its headers whether a request comes from our own page.
 *
 * Host: a web page of another site can give its own name our address (DNS rebinding), and then its
 * requests name that site. Only names of this machine are accepted, and the one that the user
 * gave. The port is free, because a tunnel has another one.
 *
 * Origin and Sec-Fetch-Site: a browser sends cookies also with requests that pages of another port
 * of this machine make, and names the page in these headers.
 *
 * The functions only look at strings. NULL is a header that is missing. Never fail. */
#ifndef WEB_CHECK_H
#define WEB_CHECK_H

#include "web/base/base.h"

/* Whether host, such as "localhost:8760" or "[::1]:8760", names this machine, or is `extra` with
 * or without a port. extra may be NULL. */
bool check_host(const char *host, const char *extra);

/* Whether origin is "http://" or "https://" and exactly host. */
bool check_origin(const char *origin, const char *host);

/* Whether origin may show the page in a frame: "http://" and a name that check_host() accepts, with
 * or without a port; or "https://" and `extra`, because only a proxy has TLS. The cookie is for the
 * same site only, so a frame in a page of another host or scheme would have no session. The text
 * has no characters that mean anything else in a policy, as far as extra has none. */
bool check_frame(const char *origin, const char *extra);

/* Whether by its header Sec-Fetch-Site our page or the user has made the request. NULL: no header.
 */
bool check_fetch_site(const char *site);

/* Compares two texts in a time that depends on their lengths only. */
bool check_equal(const char *a, const char *b);

#endif
