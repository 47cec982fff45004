/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/shmview.hpp - shmview.h for C++17: handles that close themselves, and a scoped lock.
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
 * This header wraps only what C++ can do better than C: ownership and scopes here, arrays in
 * element.hpp. Everything else is the C call, with get() as the C handle. Results are those of the
 * C calls, so their comments in shmview.h hold here too: 0 on success, SHMVIEW_OWNER_DIED, or a
 * negated SHMVIEW_ERR_*.
 *
 * All of it is in headers, so there is no C++ library and no C++ ABI. Nothing here throws,
 * allocates, or needs exceptions or run-time types. */
#ifndef SHMVIEW_SHMVIEW_HPP
#define SHMVIEW_SHMVIEW_HPP

#include <cstdint>
#include <utility>

#include <shmview/element.hpp>
#include <shmview/shmview.h>

namespace shmview
{

/* --- Handles ------------------------------------------------------------- */

/* Owns a C handle or none, like std::unique_ptr. It can be moved, not copied.
 *
 * The destructor and reset() call Abandon, which cannot report an error. close() calls Close and
 * returns its result, for callers that must know whether it worked. */
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

    /* The C handle, which the object still owns; nullptr if it owns none. */
    T *get() const noexcept
    {
        return owned_;
    }
    explicit operator bool() const noexcept
    {
        return owned_ != nullptr;
    }
    /* Gives up the handle: the caller must close it. */
    [[nodiscard]] T *release() noexcept
    {
        return std::exchange(owned_, nullptr);
    }
    /* Takes over another handle, and abandons the one that it owned. */
    void reset(T *owned = nullptr) noexcept
    {
        if (T *old = std::exchange(owned_, owned); old && old != owned)
            Abandon(old);
    }
    /* Closes the handle. Returns what the C call returns. On failure the object still owns the
     * handle. */
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

/* A connection. Declare it before its segments, so that they are destroyed first:
 * shmview_disconnect() refuses while segments are attached, and the destructor then leaves the
 * connection open until the process ends. */
using connection = handle<shmview_connection, detail::abandon_connection, shmview_disconnect>;
/* A segment. The destructor calls shmview_detach_later(), which waits for buffers and tensors that
 * are not released; close() calls shmview_detach(), which returns -SHMVIEW_ERR_BUSY for them. */
using segment = handle<shmview_segment, detail::abandon_segment, shmview_detach>;

/* The C calls that make a handle, with the same results. If they succeed, ret abandons the handle
 * that it owned and owns the new one. If they fail, ret is unchanged. */
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

/* Takes a segment's lock, and releases it at the end of the scope. mode is SHMVIEW_EXCLUSIVE or
 * SHMVIEW_SHARED. Check the object before you use the bytes: it is false if the lock was not taken.
 * Only the thread that made it may use or destroy it, and the segment must outlive it.
 *
 *     if (shmview::scoped_lock lock(seg, SHMVIEW_SHARED, shmview_deadline(1000000000)); lock)
 *         ...
 *     else
 *         std::puts(shmview_strerror(lock.result())); */
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
    /* Takes the lock of the view's segment by shmview_view_lock(): the result is -SHMVIEW_ERR_STALE
     * if the view belongs to another phase than the current one. */
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

    /* Whether this object holds the lock now. */
    explicit operator bool() const noexcept
    {
        return holds_;
    }
    /* What taking the lock returned: 0, SHMVIEW_OWNER_DIED or a negated SHMVIEW_ERR_*. */
    int result() const noexcept
    {
        return result_;
    }
    /* Whether the last exclusive holder died inside, so that the bytes may be half written. Repair
     * them, or call unlock_not_repaired(). The destructor unlocks as if they were repaired. */
    bool owner_died() const noexcept
    {
        return result_ == SHMVIEW_OWNER_DIED;
    }
    /* Releases the lock before the end of the scope. Returns what shmview_unlock() returns, or 0 if
     * this object does not hold the lock. */
    int unlock() noexcept
    {
        return std::exchange(holds_, false) ? shmview_unlock(segment_) : 0;
    }
    /* Like unlock(), but the next owner gets SHMVIEW_OWNER_DIED, because the bytes are not in
     * order. */
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
