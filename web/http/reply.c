/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http/reply.h"

#include <stdarg.h>
#include <stdio.h>

void reply_free(struct reply *r)
{
    text_free(&r->body);
    if (r->stream.arg)
        r->stream.free(r->stream.arg);
    r->stream.arg = NULL;
}

void reply_error(struct reply *r, unsigned status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reply_free(r);
    const char *allow = r->allow;
    unsigned retry_after_s = r->retry_after_s;
    *r = (struct reply){
        .status = status, .type = TYPE_JSON, .allow = allow, .retry_after_s = retry_after_s};
    text_put(&r->body, "{\"error\":");
    text_json(&r->body, text);
    text_print(&r->body, ",\"status\":%u}\n", status);
}

void reply_page(struct reply *r, unsigned status, const char *title, const char *text)
{
    reply_free(r);
    *r = (struct reply){.status = status, .type = TYPE_HTML};
    text_put(&r->body, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    text_html(&r->body, title);
    text_put(&r->body, "</title></head><body><main><h1>");
    text_html(&r->body, title);
    text_put(&r->body, "</h1><p>");
    text_html(&r->body, text);
    text_put(&r->body, "</p></main></body></html>\n");
}
