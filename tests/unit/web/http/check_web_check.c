/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which hosts and origins the page's server takes for its own. */
#include "web/http/check.h"

#include "unit/unit.h"

START_TEST(hosts)
{
    static const char *const ours[] = {"localhost",      "localhost:8760", "127.0.0.1:1",
                                       "[::1]:65535",    "LocalHost:80",   "proxy.example",
                                       "proxy.example:4"};
    static const char *const foreign[] = {"",
                                          "localhost:",
                                          "localhost:123456",
                                          "localhost:8x",
                                          "localhost.evil",
                                          "evil.localhost",
                                          "127.0.0.1.evil:80",
                                          "127.0.0.2",
                                          "::1",
                                          "proxy.example.evil",
                                          " localhost",
                                          "localhost:80:80"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        ck_assert_msg(check_host(ours[i], "proxy.example"), "%s", ours[i]);
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        ck_assert_msg(!check_host(foreign[i], "proxy.example"), "%s", foreign[i]);
    ck_assert(!check_host(NULL, NULL));
    ck_assert(!check_host("proxy.example", NULL));
    ck_assert(!check_host("", ""));
    ck_assert(!check_host(":80", ""));
}
END_TEST

START_TEST(origins)
{
    ck_assert(check_origin("http://localhost:8760", "localhost:8760"));
    ck_assert(check_origin("https://proxy.example", "proxy.example"));
    ck_assert(!check_origin("http://localhost:8761", "localhost:8760"));
    ck_assert(!check_origin("http://localhost", "localhost:8760"));
    ck_assert(!check_origin("http://localhost:8760/", "localhost:8760"));
    ck_assert(!check_origin("http://localhost:8760.evil", "localhost:8760"));
    ck_assert(!check_origin("ftp://localhost:8760", "localhost:8760"));
    ck_assert(!check_origin("null", "null"));
    ck_assert(!check_origin("localhost:8760", "localhost:8760"));
    ck_assert(!check_origin(NULL, "localhost"));
    ck_assert(!check_origin("http://", NULL));
}
END_TEST

START_TEST(origins_of_frames)
{
    static const char *const right[] = {"http://localhost:8888", "http://127.0.0.1:1",
                                        "http://[::1]:8888",     "http://localhost",
                                        "http://proxy.example",  "https://proxy.example:8443"};
    static const char *const wrong[] = {"",
                                        "*",
                                        "'self'",
                                        "http:",
                                        "http://",
                                        "https://",
                                        "https://localhost:8888",
                                        "localhost:8888",
                                        "http://localhost:8888/",
                                        "http://localhost:*",
                                        "http://*:8888",
                                        "http://localhost:8888 *",
                                        "http://localhost:8888;script-src *",
                                        "http://evil.example",
                                        "HTTP://localhost:8888",
                                        "file://localhost",
                                        "http://user@localhost:8888"};
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        ck_assert_msg(check_frame(right[i], "proxy.example"), "%s", right[i]);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        ck_assert_msg(!check_frame(wrong[i], "proxy.example"), "%s", wrong[i]);
    ck_assert(!check_frame("http://proxy.example", NULL));
    ck_assert(!check_frame("https://proxy.example", NULL));
    ck_assert(!check_frame("https://", ""));
}
END_TEST

START_TEST(sites_that_made_the_request)
{
    ck_assert(check_fetch_site(NULL));
    ck_assert(check_fetch_site("same-origin"));
    ck_assert(check_fetch_site("none"));
    ck_assert(!check_fetch_site("same-site"));
    ck_assert(!check_fetch_site("cross-site"));
    ck_assert(!check_fetch_site(""));
}
END_TEST

START_TEST(secrets_are_equal)
{
    ck_assert(check_equal("", ""));
    ck_assert(check_equal("0123", "0123"));
    ck_assert(!check_equal("0123", "0124"));
    ck_assert(!check_equal("0123", "1123"));
    ck_assert(!check_equal("0123", "012"));
    ck_assert(!check_equal("", "0"));
}
END_TEST

UNIT_MAIN("web_check", UNIT_TEST(hosts), UNIT_TEST(origins), UNIT_TEST(origins_of_frames),
          UNIT_TEST(sites_that_made_the_request), UNIT_TEST(secrets_are_equal))
