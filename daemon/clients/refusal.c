/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/refusal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/base/log.h"

/* Makes a string of text that may be no UTF-8: text that was cut can end in the middle of a
 * character. JSON cannot express such bytes, so they become question marks. */
static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    char ascii[512];
    snprintf(ascii, sizeof ascii, "%s", text);
    for (char *p = ascii; *p; p++)
        if (*p & 0x80)
            *p = '?';
    return json_string(ascii);
}

void refuse(struct answer *answer, int error, json_t *facts, const char *reason, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, reason);
    vsnprintf(text, sizeof text, reason, ap);
    va_end(ap);
    answer->error = error;
    answer->reason = strdup(text);
    answer->parameters = facts;
}

void refuse_parameter(struct answer *answer, const struct wire_fault *fault)
{
    if (fault->no_memory) {
        refuse_system(answer, fault->parameter, ENOMEM);
        return;
    }
    refuse(answer, SHMVIEW_ERR_INVALID,
           json_pack("{s:o}", "parameter", text_value(fault->parameter)), "%s %s", fault->parameter,
           fault->reason);
}

void refuse_system(struct answer *answer, const char *what, int error_number)
{
    log_error("%s: %s", what, strerror(error_number));
    refuse(answer, SHMVIEW_ERR_SYSTEM, NULL, "%s: %s", what, strerror(error_number));
}

void refuse_quota(struct answer *answer, uid_t uid, const struct quota_excess *e)
{
    const char *noun =
        strcmp(e->what, "buffer_bytes") == 0 ? "bytes of requests and replies" : e->what;
    char whose[32] = "all users together";
    if (!e->of_all)
        snprintf(whose, sizeof whose, "uid %u", uid);
    json_t *facts =
        json_pack("{s:s, s:I, s:I, s:I}", "what", e->what, "asked", (json_int_t)e->asked, "used",
                  (json_int_t)e->used, "limit", (json_int_t)e->limit);
    if (e->kept)
        refuse(answer, SHMVIEW_ERR_QUOTA, facts,
               "%" PRIu64 " %s asked for; the last %" PRIu64
               " are kept for users that have fewer than that, and %s has %" PRIu64,
               e->asked, noun, e->kept, whose, e->used);
    else
        refuse(answer, SHMVIEW_ERR_QUOTA, facts,
               "%" PRIu64 " %s asked for; %s may have %" PRIu64 ", of which %" PRIu64 " are used",
               e->asked, noun, whose, e->limit, e->used);
}

void answer_with(struct answer *answer, json_t *parameters)
{
    answer->parameters = parameters;
    if (!parameters)
        refuse_system(answer, "an answer cannot be made", ENOMEM);
}

void answer_with_text(struct answer *answer, char *text, size_t bytes)
{
    answer->text = text;
    answer->text_bytes = bytes;
    if (!text)
        refuse_system(answer, "an answer cannot be made", ENOMEM);
}

void refuse_varlink(struct answer *answer, int error, const char *fact, const char *value)
{
    answer->error = error;
    answer->parameters = json_pack("{s:s}", fact, value);
}

const char *refusal_name(int error)
{
    return error == REFUSAL_NO_METHOD       ? "org.varlink.service.MethodNotFound"
           : error == REFUSAL_NO_INTERFACE  ? "org.varlink.service.InterfaceNotFound"
           : error == REFUSAL_EXPECTED_MORE ? "org.varlink.service.ExpectedMore"
                                            : wire_error_name(error);
}

char *refusal_text(struct answer *answer, size_t *ret_bytes)
{
    json_t *facts = STEAL(answer->parameters);
    if (!facts)
        facts = json_object();
    if (answer->reason)
        json_object_set_new_nocheck(facts, "reason", text_value(answer->reason));
    return wire_reply_text(refusal_name(answer->error), facts, ret_bytes);
}
