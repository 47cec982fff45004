# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # An attachment: the mapped bytes, the lock, the phases and the counter of changes. Any thread may
  # use it, and so may a forked child. The child gets a slot of its own in the lock, and never holds
  # a lock that its parent holds.
  class Segment
    # Returns a View of the bytes as elements of +format+, from byte +offset+ on.
    #
    # format:: in the notation of PEP 3118 ("f", "<i4", "T{d:x:d:y:}"), numpy ("f4", "int") or DLPack
    #          ("float32"); or Integer, Float or Complex
    # shape:: the number of elements in each dimension: an Integer, or an Array of at most 8; nil: one
    #         dimension to the end of the segment
    # strides:: bytes from one element to the next in each dimension, may be negative or 0; nil:
    #           row-major without gaps
    # suboffsets:: bytes for each dimension, -1 for none: the segment stores where each row begins
    # readonly:: true: this view cannot write; other views are not affected
    #
    # Raises FormatError, Misaligned, IllSized, Bounds, Overflow (the text names the dimension and
    # the byte), Closed.
    def cast(format, shape = nil, offset: 0, strides: nil, suboffsets: nil, readonly: false)
      _cast(format, shape, offset, strides, suboffsets, readonly)
    end

    # Returns a View of all bytes, of format "B". Raises Closed.
    def buf
      cast("B")
    end

    # Makes the bytes immutable for good: no process can change them any longer, and readers need no
    # lock. The segment must have been created with <tt>backing: :sealed</tt>. Its access is :read
    # afterwards, and all its Views are read-only, also those that exist. Object#freeze is another
    # thing.
    #
    # future:: true: this process goes on writing, and no other can begin to
    #
    # Returns self. Blocks for two round trips. While it runs, other threads cannot use the segment, but
    # can give back its lock.
    # Raises Busy while another process may write, which the text names, or while a consumer has the
    # memory; ReadOnly, Invalid (not sealed, or a stream), Denied, Disconnected, Closed; FrozenError if
    # the segment is shareable.
    def freeze_bytes(future: false)
      _freeze_bytes(future)
      self
    end

    # Declares layouts: named sets of views that hold at the same time; returns self.
    #
    #   seg.define(float: {A: ["f4", 1000], B: ["f4", [10, 10]]}, int: {D: ["i2", 2000], E: "i8"})
    #
    # A view is a format, <tt>[format, shape, offset]</tt>, or a Hash with the keywords of cast. A
    # view without an offset follows the view before it, aligned to its element. Needs access :write.
    # Blocks for one round trip for each layout. Raises LayoutExists, ReadOnly, Limit, Quota,
    # Disconnected, and the errors of cast. The layouts before the one that failed are declared then.
    def define(layouts = nil, **more)
      resolved, = Layouts.resolve((layouts || {}).merge(more))
      resolved.each { |layout, views| _define(layout, views) }
      self._layouts = Layouts.names(resolved, _layouts)
      self
    end

    # Returns the layouts of the segment: a Hash, for each name of a layout, of the names of its views,
    # in the form that define takes. Asks the daemon each time, because another process may have
    # declared one since. Blocks for one round trip. Raises NotFound (its name was removed), Invalid
    # (foreign memory), Closed, Disconnected.
    def layouts
      Core.layouts(name, _daemon)
    end

    # Maps every page now instead of at its first use, by that many threads at once; returns self. No
    # byte changes. Raises Closed, NoMemory, ArgumentError, and SystemCallFailed if another client has
    # truncated the memory.
    def populate(threads: 1)
      raise ArgumentError, "threads: 1 or more, not #{threads}" unless threads.positive?

      step = size / threads / 4096 * 4096
      starts = Array.new(threads) { |i| i * step }.uniq
      parts = starts.zip(starts.drop(1) << size)
      workers = parts.drop(1).map { |from, to| Thread.new { _populate(from, to - from) } }
      workers.each { |worker| worker.report_on_exception = false }
      _populate(parts[0][0], parts[0][1] - parts[0][0])
      self
    ensure
      workers&.each(&:join)
    end

    # Yields the counter after each change from now on; without a block returns an Enumerator.
    # Several changes during one run of the block are yielded as one. +timeout+: seconds to wait for
    # each change before TimedOut is raised; nil: without limit.
    #
    #   seg.on_change.each { |n| break if seg.shared { seg["A"][0] } == 1 }
    #
    # Waits and raises like wait.
    def on_change(timeout: nil)
      return enum_for(:on_change, timeout: timeout) unless block_given?

      seen = change
      loop_forever { yield(seen = wait(change: seen, timeout: timeout)) }
    end

    # Returns an IO that becomes readable when the counter changes, for IO.select and event loops.
    # Read from it until it would block, then compare change; it may also wake up without a change.
    # The descriptor belongs to the segment: closing the IO does not close it. Blocks for one round
    # trip the first time. A forked child must call this again. Raises Limit, NoLock, Closed,
    # Disconnected.
    def change_io
      IO.for_fd(_change_fd, "r", autoclose: false)
    end

    private

    # Kernel#loop would take a StopIteration that the block raises as the end of the loop.
    def loop_forever
      yield while true
    end
  end
end
