/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/stream.hpp - streams for C++17: frames are values that can be moved, and give themselves
 * back.
 *
 *     using namespace std::chrono_literals;
 *     shmview::connection conn;
 *     shmview::stream camera;
 *     if (shmview::connect(conn) || shmview::open(conn, "camera", SHMVIEW_READ, camera))
 *         return 1;
 *     shmview::frames frames(camera, 5s);
 *     for (shmview::frame &frame : frames)
 *         if (auto image = frame.as<const std::uint8_t, 3>("image"))
 *             show(*image);
 *     if (frames.result() < 0)
 *         std::puts(shmview_strerror(frames.result()));
 *
 * A frame discards itself if it is loaned, and releases itself if it is taken or kept. This header
 * wraps only what C++ can do better than C: ownership, scopes, loops, times and types. Everything
 * else is the C call, with get() as the C handle or the C frame. Results are those of the C calls,
 * so their comments in stream.h hold here too.
 *
 * Declare a stream before its frames, so that they are destroyed first. Nothing here throws,
 * allocates, or needs exceptions or run-time types. */
#ifndef SHMVIEW_STREAM_HPP
#define SHMVIEW_STREAM_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <shmview/shmview.hpp>
#include <shmview/stream.h>

namespace shmview
{

/* --- Deadlines ----------------------------------------------------------- */

namespace detail
{
/* A time too long for 64 bits is SHMVIEW_FOREVER. */
template <class Rep, class Period>
constexpr std::int64_t ns_of(std::chrono::duration<Rep, Period> time) noexcept
{
    const double about = std::chrono::duration<double, std::nano>(time).count();
    if (!(about < 9.2e18))
        return SHMVIEW_FOREVER;
    if (about < -9.2e18)
        return -SHMVIEW_FOREVER;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

inline void abandon_stream(shmview_stream *stream) noexcept
{
    shmview_stream_close_later(stream);
}
} // namespace detail

/* The end of a wait: a time from now (100ms), a time of std::chrono::steady_clock, or a deadline of
 * C, such as 0 and SHMVIEW_FOREVER. */
class deadline
{
  public:
    constexpr deadline(std::int64_t deadline_ns) noexcept : ns_(deadline_ns)
    {
    }
    template <class Rep, class Period>
    deadline(std::chrono::duration<Rep, Period> from_now) noexcept
        : ns_(shmview_deadline(detail::ns_of(from_now)))
    {
    }
    template <class Duration>
    constexpr deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> when) noexcept
        : ns_(detail::ns_of(when.time_since_epoch()))
    {
    }
    /* As C has it. */
    constexpr std::int64_t ns() const noexcept
    {
        return ns_;
    }

  private:
    std::int64_t ns_;
};

/* --- Frames -------------------------------------------------------------- */

/* A frame that was loaned or taken, or none. It can be moved, not copied.
 *
 * Check the object before you use the frame: it is false if no frame was loaned or taken, and
 * result() is then the reason.
 *
 *     if (shmview::frame frame = camera.take(100ms))
 *         ...
 *     else if (frame.writer_died())
 *         ... */
class frame
{
  public:
    frame() noexcept = default;
    /* Takes over a frame of a C call, of which the caller uses no other copy. */
    explicit frame(const shmview_frame &owned) noexcept : c_(owned), result_(0), holds_(true)
    {
    }
    frame(frame &&other) noexcept
        : c_(std::exchange(other.c_, shmview_frame{})),
          result_(std::exchange(other.result_, -SHMVIEW_ERR_NOT_OWNER)),
          holds_(std::exchange(other.holds_, false))
    {
    }
    frame &operator=(frame &&other) noexcept
    {
        if (this != &other) {
            reset();
            c_ = std::exchange(other.c_, shmview_frame{});
            result_ = std::exchange(other.result_, -SHMVIEW_ERR_NOT_OWNER);
            holds_ = std::exchange(other.holds_, false);
        }
        return *this;
    }
    frame(const frame &) = delete;
    frame &operator=(const frame &) = delete;
    ~frame()
    {
        reset();
    }

    /* Whether this object has a frame that is loaned, taken or kept now. */
    explicit operator bool() const noexcept
    {
        return holds_;
    }
    /* What loaning or taking returned: 0, SHMVIEW_WRITER_DIED, SHMVIEW_STREAM_ENDED or a negated
     * SHMVIEW_ERR_*. It is -SHMVIEW_ERR_NOT_OWNER if nothing was loaned or taken. */
    int result() const noexcept
    {
        return result_;
    }
    /* Whether there is no frame because a writer has died; see shmview_stream_death(). The next
     * take goes on. */
    bool writer_died() const noexcept
    {
        return result_ == SHMVIEW_WRITER_DIED;
    }
    /* Whether there is no frame because a writer has ended the stage. */
    bool stream_ended() const noexcept
    {
        return result_ == SHMVIEW_STREAM_ENDED;
    }
    /* The C frame, which the object still owns. Its members can be read, and those that C lets a
     * program set can be set. */
    shmview_frame *get() noexcept
    {
        return &c_;
    }
    const shmview_frame *get() const noexcept
    {
        return &c_;
    }
    /* Gives the frame back before the end of the scope: discards it if it is loaned, releases it if
     * it is taken or kept. */
    void reset() noexcept
    {
        if (!std::exchange(holds_, false))
            return;
        shmview_frame_discard(&c_);
        shmview_frame_release(&c_);
    }

    /* Of a taken frame, and of one that was published: its number, from 1. */
    std::uint64_t sequence() const noexcept
    {
        return c_.sequence;
    }
    /* How many frames this reader has missed between the one before and this one. */
    std::uint64_t missed() const noexcept
    {
        return c_.missed;
    }
    /* When the frame was published, or the time that its writer gave it. */
    std::chrono::steady_clock::time_point time() const noexcept
    {
        return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(c_.time_ns));
    }
    /* See shmview_frame_is_intact(): only a frame that was taken with SHMVIEW_PEEK may be not. */
    bool is_intact() const noexcept
    {
        return shmview_frame_is_intact(&c_) == 1;
    }

    /* The view of a name or of a number, with the result of shmview_frame_view(). It is valid until
     * the frame is published or given back. */
    template <class Key> [[nodiscard]] int view(Key which, shmview_view &ret) const noexcept
    {
        if constexpr (std::is_integral_v<Key>)
            return shmview_frame_view_at(&c_, static_cast<std::size_t>(which), &ret);
        else
            return shmview_frame_view(&c_, which, &ret);
    }
    /* Like view(), but an array; see as() and contiguous() in element.hpp. The result is nullopt
     * also if there is no such view. Of a taken frame, T must be const. */
    template <class T, std::size_t N, class Key>
    [[nodiscard]] std::optional<strided<T, N>> as(Key which) const &noexcept
    {
        shmview_view found;
        if (view(which, found) != 0)
            return std::nullopt;
        return shmview::as<T, N>(found);
    }
    template <class T, class Key>
    [[nodiscard]] std::optional<span<T>> contiguous(Key which) const &noexcept
    {
        shmview_view found;
        if (view(which, found) != 0)
            return std::nullopt;
        return shmview::contiguous<T>(found);
    }
    /* A frame without a name is gone before its array is used. */
    template <class T, std::size_t N, class Key> void as(Key which) const && = delete;
    template <class T, class Key> void contiguous(Key which) const && = delete;

    /* Stores a value in the user bytes of a loaned frame. Returns false if it is not loaned. */
    template <class T> bool set_user(const T &value) noexcept
    {
        static_assert(std::is_trivially_copyable_v<T>,
                      "the value goes to another process as bytes");
        static_assert(sizeof(T) <= SHMVIEW_STREAM_USER_BYTES, "there is no room for it");
        if (!holds_ || c_.sequence != 0)
            return false;
        std::memcpy(c_.user, &value, sizeof value);
        c_.user_bytes = sizeof value;
        return true;
    }
    /* Returns a copy of the value in the user bytes, or nullopt if they are not as many as T has.
     */
    template <class T> [[nodiscard]] std::optional<T> user() const noexcept
    {
        static_assert(std::is_trivially_copyable_v<T>, "the value comes from another process");
        if (!holds_ || c_.user_bytes != sizeof(T))
            return std::nullopt;
        T value;
        std::memcpy(&value, c_.user, sizeof value);
        return value;
    }

    /* shmview_frame_set_length(): sets the length of view i of a loaned frame. */
    [[nodiscard]] int set_length(std::size_t i, std::uint64_t length) noexcept
    {
        return shmview_frame_set_length(&c_, i, length);
    }
    /* Publishes a loaned frame. On success the object is false, and sequence() is its number. On
     * failure the object keeps the frame, and discards it at the end, unless the stream is
     * damaged: then there is no frame. */
    [[nodiscard]] int publish() noexcept
    {
        int result = shmview_frame_publish(&c_);
        holds_ = c_.state != 0;
        return result;
    }
    /* shmview_frame_publish_kept(): publishes a loaned frame, and goes on reading it. The object
     * still has the frame, whose views are read-only from now on, and releases it at the end. On
     * failure as publish(). */
    [[nodiscard]] int publish_kept() noexcept
    {
        int result = shmview_frame_publish_kept(&c_);
        holds_ = c_.state != 0;
        return result;
    }
    /* shmview_frame_pass(): publishes a taken frame in another stage. The object still has it. */
    [[nodiscard]] int pass(std::uint32_t stage,
                           std::uint64_t *ret_sequence = nullptr) const noexcept
    {
        return shmview_frame_pass(&c_, stage, ret_sequence);
    }

  private:
    friend class stream;
    template <class Call> static frame of(Call call) noexcept
    {
        frame made;
        made.result_ = call(&made.c_);
        made.holds_ = made.result_ == 0;
        return made;
    }

    shmview_frame c_{};
    int result_ = -SHMVIEW_ERR_NOT_OWNER;
    bool holds_ = false;
};

/* --- Streams ------------------------------------------------------------- */

/* A stream, which the destructor closes by shmview_stream_close_later(). close() calls
 * shmview_stream_close(), which returns -SHMVIEW_ERR_BUSY while the process has frames of it.
 * Destroy its frames before it. */
class stream : public handle<shmview_stream, detail::abandon_stream, shmview_stream_close>
{
  public:
    using handle::handle;

    /* Loans a free slot, takes the next frame, or takes the newest one. Waits until the deadline.
     * The frame has the result of the C call. */
    [[nodiscard]] frame loan(deadline until = SHMVIEW_FOREVER) const noexcept
    {
        return frame::of(
            [&](shmview_frame *ret) { return shmview_stream_loan(get(), until.ns(), ret); });
    }
    [[nodiscard]] frame take(deadline until = SHMVIEW_FOREVER) const noexcept
    {
        return frame::of(
            [&](shmview_frame *ret) { return shmview_stream_take(get(), until.ns(), ret); });
    }
    [[nodiscard]] frame take_latest(deadline until = SHMVIEW_FOREVER) const noexcept
    {
        return frame::of(
            [&](shmview_frame *ret) { return shmview_stream_take_latest(get(), until.ns(), ret); });
    }
};

/* The C calls that make a stream, with the same results. If they succeed, ret abandons the stream
 * that it owned and owns the new one. If they fail, ret is unchanged. */
[[nodiscard]] inline int create(const connection &on, const char *name,
                                const shmview_stream_spec &spec, stream &ret) noexcept
{
    shmview_stream *made = nullptr;
    int result = shmview_stream_create(on.get(), name, &spec, &made);
    if (result == 0)
        ret.reset(made);
    return result;
}

[[nodiscard]] inline int open(const connection &on, const char *name, int access,
                              stream &ret) noexcept
{
    shmview_stream *made = nullptr;
    int result = shmview_stream_open(on.get(), name, access, &made);
    if (result == 0)
        ret.reset(made);
    return result;
}

/* --- Loops --------------------------------------------------------------- */

/* The frames of a stream in order, for a loop. It ends with the first take that gives no frame, and
 * result() is what that take returned. Another loop goes on from there.
 *
 *     shmview::frames frames(camera);
 *     do
 *         for (shmview::frame &frame : frames)
 *             ...
 *     while (frames.writer_died());     the frames of the next writer
 *
 * Each frame is released before the next one is taken. Move it to another object to keep it. One
 * thread uses the object, and the stream must outlive it. */
class frames
{
  public:
    explicit frames(const stream &of) noexcept : stream_(&of)
    {
    }
    /* Each frame must come within the timeout. */
    template <class Rep, class Period>
    frames(const stream &of, std::chrono::duration<Rep, Period> timeout) noexcept
        : stream_(&of), timeout_ns_(detail::ns_of(timeout))
    {
    }

    /* Why the loop has ended; as frame::result(). */
    int result() const noexcept
    {
        return now_.result();
    }
    bool writer_died() const noexcept
    {
        return now_.writer_died();
    }
    bool stream_ended() const noexcept
    {
        return now_.stream_ended();
    }

    class sentinel
    {
    };
    /* Takes a frame when it is made and at each step. There may be one at a time. */
    class iterator
    {
      public:
        explicit iterator(frames &of) noexcept : of_(&of)
        {
            of_->next();
        }
        frame &operator*() const noexcept
        {
            return of_->now_;
        }
        frame *operator->() const noexcept
        {
            return &of_->now_;
        }
        iterator &operator++() noexcept
        {
            of_->next();
            return *this;
        }
        bool operator!=(sentinel) const noexcept
        {
            return of_->now_.result() == 0;
        }

      private:
        frames *of_;
    };
    iterator begin() noexcept
    {
        return iterator(*this);
    }
    sentinel end() const noexcept
    {
        return {};
    }

  private:
    void next() noexcept
    {
        now_.reset();
        now_ = stream_->take(shmview_deadline(timeout_ns_));
    }

    const stream *stream_;
    std::int64_t timeout_ns_ = SHMVIEW_FOREVER;
    frame now_;
};

} // namespace shmview
#endif
