# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # An attachment: the mapped bytes, the lock, the phases and the counter of changes. Any thread
  # may use it; a forked child goes on with it, has its own place in the lock and never holds its
  # parent's.
  class Segment
    # A View of the bytes as +format+, from byte +offset+ on.
    #
    # format:: as PEP 3118 ("f", "<i4", "T{d:x:d:y:}"), numpy ("f4") or DLPack ("float32") write it
    # shape:: an Integer, or an Array of at most 8: elements; nil: one dimension to the end
    # strides:: bytes, one for each dimension, negative and zero allowed; nil: C order
    # suboffsets:: bytes, -1 for none: rows whose places are stored in the segment
    # readonly:: of this view; others may be written
    #
    # Raises FormatError, Misaligned, IllSized, Bounds, Overflow (the text names the dimension and
    # the byte), Closed.
    def cast(format, shape = nil, offset: 0, strides: nil, suboffsets: nil, readonly: false)
      _cast(format, shape, offset, strides, suboffsets, readonly)
    end

    # All bytes, as a View of "B". Raises Closed.
    def buf
      cast("B")
    end

    # Declares layouts: named sets of views that hold at the same time; returns self.
    #
    #   seg.define(float: {A: ["f4", 1000], B: ["f4", [10, 10]]}, int: {D: ["i2", 2000], E: "i8"})
    #
    # A view is a format, <tt>[format, shape, offset]</tt>, or a Hash with the keywords of cast. What
    # has no offset follows the view before it, aligned to its element. Needs access :write. Blocks
    # for one round trip each. Raises LayoutExists, ReadOnly, Limit, Quota, Disconnected, and what
    # cast raises; those before the one that failed are declared.
    def define(layouts = nil, **more)
      resolved, = Layouts.resolve((layouts || {}).merge(more))
      resolved.each { |layout, views| _define(layout, views) }
      self._layouts = Layouts.names(resolved, _layouts)
      self
    end

    # The changes from now on, one after the other: an Enumerator of counters, or yields each to
    # the block. Changes that come while one is looked at are one. +timeout+: seconds to wait for
    # each, then TimedOut is raised; nil: as long as it takes.
    #
    #   seg.on_change.each { |n| break if seg.shared { seg["A"][0] } == 1 }
    #
    # As wait in everything else.
    def on_change(timeout: nil)
      return enum_for(:on_change, timeout: timeout) unless block_given?

      seen = change
      loop_forever { yield(seen = wait(change: seen, timeout: timeout)) }
    end

    # An IO that becomes readable when the counter changes, for IO.select and event loops. Read
    # from it until it would block, then look at change; it may also wake for no change. It belongs
    # to the segment: closing it only lets go of it. Blocks for one round trip the first time. A
    # forked child asks for its own. Raises Limit, NoLock, Closed, Disconnected.
    def change_io
      IO.for_fd(_change_fd, "r", autoclose: false)
    end

    private

    # loop would take StopIteration for an end.
    def loop_forever
      yield while true
    end
  end
end
