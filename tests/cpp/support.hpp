/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support for C++, and helpers that both programs use. */
#ifndef CPP_SUPPORT_HPP
#define CPP_SUPPORT_HPP

#include <check.h>
#undef fail /* check defines it as a macro, but streams have a member of that name */

#include <shmview/shmview.hpp>

extern "C" {
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"
}

/* Returns a view of wrapped memory. */
inline shmview_view make_view(const shmview::segment &in, const shmview_view_spec &spec)
{
    shmview_view view;
    OK(shmview_view_make(in.get(), &spec, &view));
    return view;
}

inline shmview_view cast_view(const shmview::segment &in, const char *format)
{
    shmview_view view;
    OK(shmview_view_cast(in.get(), format, 0, SHMVIEW_REST, &view));
    return view;
}

#endif
