/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of libshmview as exceptions.
 *
 * lib/shmview/errors.rb has the classes and makes the objects (Shmview::Errors.make), because an
 * exception with attributes is shorter in Ruby than in C. This file converts the error number and
 * the text. Texts of libshmview can contain bytes that a client wrote into shared memory
 * (the command of a dead owner), so invalid UTF-8 in them is replaced. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>

static VALUE errors; /* the module Shmview::Errors */

static VALUE utf8(const char *text)
{
    return rb_str_scrub(rb_utf8_str_new_cstr(text), Qnil);
}

/* rb_str_scrub() returns nil if nothing had to be replaced. */
VALUE text_of(const char *text)
{
    VALUE said = utf8(text);
    return NIL_P(said) ? rb_utf8_str_new_cstr(text) : said;
}

/* Raises the exception of the class that belongs to error. */
static void raise_made(int error, VALUE text, VALUE facts)
{
    rb_exc_raise(rb_funcall(errors, rb_intern("make"), 3, INT2NUM(error), text, facts));
}

void raise_error(int r, VALUE facts)
{
    const char *text = shmview_error_text();
    raise_made(-r, text_of(text[0] ? text : shmview_strerror(r)), facts);
    UNREACHABLE;
}

void told_by(struct told *told, int r)
{
    told->r = r;
    told->text[0] = '\0';
    if (r)
        snprintf(told->text, sizeof told->text, "%s", shmview_error_text());
}

void raise_told(const struct told *told, VALUE facts)
{
    raise_made(-told->r, text_of(told->text[0] ? told->text : shmview_strerror(told->r)), facts);
    UNREACHABLE;
}

void raise_text(int error, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    VALUE text = rb_vsprintf(format, ap);
    va_end(ap);
    raise_made(error, text, Qnil);
    UNREACHABLE;
}

void raise_text_with(int error, VALUE facts, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    VALUE text = rb_vsprintf(format, ap);
    va_end(ap);
    raise_made(error, text, facts);
    UNREACHABLE;
}

void raise_closed(const char *what)
{
    rb_raise(rb_path2class("Shmview::Closed"), "%s is closed; open it again", what);
}

VALUE make_death(VALUE name, const struct shmview_death *death, VALUE phase)
{
    return rb_funcall(errors, rb_intern("make_death"), 6, name, UINT2NUM(death->pid),
                      UINT2NUM(death->phase), phase, text_of(death->command),
                      DBL2NUM((double)death->when_ns / 1e9));
}

VALUE fact(const char *key, VALUE value)
{
    VALUE facts = rb_hash_new();
    rb_hash_aset(facts, ID2SYM(rb_intern(key)), value);
    return facts;
}

void Init_error(void)
{
    errors = rb_path2class("Shmview::Errors");
    rb_gc_register_mark_object(errors);
}
