/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/shmview.hpp - the same for C++17: handles that give themselves back, and a lock for
 * a scope; element.hpp has the arrays.
 *
 *     shmview::connection conn;
 *     shmview::segment seg;
 *     shmview_view view;
 *     if (shmview::connect(conn) || shmview::create(conn, "demo", 4000, seg) ||
 *         shmview_view_cast(seg.get(), "float32", 0, SHMVIEW_REST, &view))
 *         return 1;
 *     auto a = shmview::as<float, 1>(view);
 *     shmview::scoped_lock lock(seg);
 *     if (a && lock && !lock.owner_died())
 *         for (float &x : *a)
 *             x += 1;
 *
 * Header only, on top of the C calls, which go with it wherever it has none: get() is the C
 * handle. Results are those of C. Nothing here throws, allocates, or needs exceptions or
 * run-time types. */
#ifndef SHMVIEW_SHMVIEW_HPP
#define SHMVIEW_SHMVIEW_HPP

#include <cstdint>
#include <utility>

#include <shmview/element.hpp>
#include <shmview/shmview.h>

namespace shmview
{

/* --- Handles ------------------------------------------------------------- */

/* Owns a C handle, or none, as std::unique_ptr does; abandon is for destructors, which
 * cannot fail, and close for callers who want to know. */
template <class T, void (*Abandon)(T *), int (*Close)(T *)> class handle
{
  public:
    handle() noexcept = default;
    explicit handle(T *owned) noexcept : owned_(owned)
    {
    }
    handle(handle &&other) noexcept : owned_(other.release())
    {
    }
    handle &operator=(handle &&other) noexcept
    {
        reset(other.release());
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle()
    {
        reset();
    }

    T *get() const noexcept
    {
        return owned_;
    }
    explicit operator bool() const noexcept
    {
        return owned_ != nullptr;
    }
    [[nodiscard]] T *release() noexcept
    {
        return std::exchange(owned_, nullptr);
    }
    void reset(T *owned = nullptr) noexcept
    {
        if (T *old = std::exchange(owned_, owned); old && old != owned)
            Abandon(old);
    }
    /* What the C call returns; where that is an error the handle keeps what it has. */
    [[nodiscard]] int close() noexcept
    {
        int result = Close(owned_);
        if (result == 0)
            owned_ = nullptr;
        return result;
    }

  private:
    T *owned_ = nullptr;
};

namespace detail
{
inline void abandon_connection(shmview_connection *connection) noexcept
{
    (void)shmview_disconnect(connection);
}
inline void abandon_segment(shmview_segment *segment) noexcept
{
    (void)shmview_detach_later(segment);
}
} // namespace detail

/* Its segments must go first: a connection that still has some stays open for good. */
using connection = handle<shmview_connection, detail::abandon_connection, shmview_disconnect>;
/* Its destructor calls shmview_detach_later(), close() calls shmview_detach(). */
using segment = handle<shmview_segment, detail::abandon_segment, shmview_detach>;

/* The C calls that make a handle. What ret had is closed if they succeed, and kept if not. */
[[nodiscard]] inline int connect(connection &ret, const char *socket_path = nullptr,
                                 unsigned flags = 0) noexcept
{
    shmview_connection *made = nullptr;
    int result = shmview_connect(socket_path, flags, &made);
    if (result == 0)
        ret.reset(made);
    return result;
}

[[nodiscard]] inline int create(const connection &on, const char *name, std::uint64_t size,
                                segment &ret,
                                const shmview_create_options *options = nullptr) noexcept
{
    shmview_segment *made = nullptr;
    int result = shmview_create(on.get(), name, size, options, &made);
    if (result == 0)
        ret.reset(made);
    return result;
}

[[nodiscard]] inline int attach(const connection &on, const char *name, int access, segment &ret,
                                unsigned flags = 0) noexcept
{
    shmview_segment *made = nullptr;
    int result = shmview_attach(on.get(), name, access, flags, &made);
    if (result == 0)
        ret.reset(made);
    return result;
}

[[nodiscard]] inline int wrap(void *data, std::uint64_t nbytes, segment &ret, unsigned flags = 0,
                              void (*release)(void *) = nullptr, void *arg = nullptr) noexcept
{
    shmview_segment *made = nullptr;
    int result = shmview_wrap(data, nbytes, flags, release, arg, &made);
    if (result == 0)
        ret.reset(made);
    return result;
}

/* --- The lock ------------------------------------------------------------ */

/* Holds a segment's lock for a scope, or says why not. mode is SHMVIEW_EXCLUSIVE or
 * SHMVIEW_SHARED. Belongs to the thread that made it. */
class scoped_lock
{
  public:
    explicit scoped_lock(shmview_segment *of, int mode = SHMVIEW_EXCLUSIVE,
                         std::int64_t deadline_ns = SHMVIEW_FOREVER) noexcept
        : segment_(of),
          result_(mode == SHMVIEW_EXCLUSIVE ? shmview_lock_until(of, deadline_ns)
                  : mode == SHMVIEW_SHARED  ? shmview_lock_shared_until(of, deadline_ns)
                                            : -SHMVIEW_ERR_INVALID),
          holds_(result_ >= 0)
    {
    }
    explicit scoped_lock(const segment &of, int mode = SHMVIEW_EXCLUSIVE,
                         std::int64_t deadline_ns = SHMVIEW_FOREVER) noexcept
        : scoped_lock(of.get(), mode, deadline_ns)
    {
    }
    /* Of the view's segment; -SHMVIEW_ERR_STALE if the view is of a past phase. */
    explicit scoped_lock(const shmview_view &view, int mode = SHMVIEW_EXCLUSIVE,
                         std::int64_t deadline_ns = SHMVIEW_FOREVER) noexcept
        : segment_(view.segment), result_(shmview_view_lock(&view, mode, deadline_ns)),
          holds_(result_ >= 0)
    {
    }
    scoped_lock(const scoped_lock &) = delete;
    scoped_lock &operator=(const scoped_lock &) = delete;
    ~scoped_lock()
    {
        (void)unlock();
    }

    explicit operator bool() const noexcept
    {
        return holds_;
    }
    /* What taking it returned: 0, SHMVIEW_OWNER_DIED or an error. */
    int result() const noexcept
    {
        return result_;
    }
    /* The last holder died inside: the bytes may be half written. */
    bool owner_died() const noexcept
    {
        return result_ == SHMVIEW_OWNER_DIED;
    }
    /* Gives it back before the end of the scope. 0 if it is not held any more. */
    int unlock() noexcept
    {
        return std::exchange(holds_, false) ? shmview_unlock(segment_) : 0;
    }
    /* The same, and the next owner is told that the bytes are not in order. */
    int unlock_not_repaired() noexcept
    {
        return std::exchange(holds_, false) ? shmview_unlock_not_repaired(segment_) : 0;
    }

  private:
    shmview_segment *segment_;
    int result_;
    bool holds_;
};

} // namespace shmview
#endif
