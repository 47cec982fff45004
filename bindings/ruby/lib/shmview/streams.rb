# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # The result of Stream#info. lossless, many_writers: true or false; slots, history, stages: as they were
  # given to create_stream; stage: of this Stream; frame_bytes: from one frame to the next.
  StreamInfo = Struct.new(:lossless, :slots, :history, :stages, :stage, :many_writers, :frame_bytes)

  # One slot of a StreamStatus. state: :free, :loaned, :published or :held (by a reader, or kept by its
  # writer); holders: how many readers hold it; pid, command: of the writer, while it is loaned or kept, 0
  # and "": unknown; time: of its frame, in seconds of the monotonic clock; sequences: the number of its
  # frame in each stage, 0: none.
  SlotStatus = Struct.new(:state, :holders, :pid, :command, :time, :sequences)

  # One reader of a StreamStatus, as that process described itself. slot: of the lock; next: the number of
  # the frame that it takes next; lag: how many published frames it has not taken; missed: how many it has
  # missed since it joined; holds: an Array of the numbers of the slots that it holds.
  ReaderStatus = Struct.new(:pid, :command, :slot, :stage, :next, :lag, :missed, :holds)

  # The result of Stream#status. published: the number of the last frame of each stage; ended: whether each
  # stage has ended; writer_pid, writer_command: of a stream with one writer, 0 and "": none, or unknown;
  # deaths: of writers from which another one took over; slots, readers: Arrays of SlotStatus and
  # ReaderStatus. The members are read one after the other, so they may belong to slightly different times.
  StreamStatus = Struct.new(:published, :ended, :writer_pid, :writer_command, :deaths, :slots, :readers)

  class Stream
    # Removes the name at once; the memory is freed when the last process closes the stream. Returns nil.
    # Blocks for one round trip. Raises NotFound, Denied, Disconnected, Closed.
    def remove
      Shmview.remove(_segment_name, connection: connection)
    end

    # Returns an IO that becomes readable when a frame is published or a slot may be free, so that IO.select
    # and event loops take a stream. Read from it until it would block, then call take(timeout: 0) or
    # loan(timeout: 0) until TimedOut is raised: this arms it again.
    #
    #   IO.select([stream])
    #   io = stream.to_io
    #   nil while io.read_nonblock(64, exception: false).is_a?(String)
    #
    # The descriptor belongs to the stream: closing the IO does not close it. Blocks for one round trip the
    # first time. A forked child must call this again. Raises Limit, NoLock (access :peek), Closed,
    # Disconnected.
    def to_io
      IO.for_fd(_fd, "r", autoclose: false)
    end
  end

  class << self
    # Creates a stream, and returns the Stream, open for writing. With a block, yields the stream, closes it
    # at the end, and returns what the block returns.
    #
    #   stream = Shmview.create_stream("camera", image: ["uint8", [480, 640, 3]], slots: 4)
    #   stream.loan { |frame| frame["image"].set_string(pixels) }
    #
    # name:: 1 to 128 letters, digits, ".", "_", "-", not beginning with a dot; nil: a random one
    # views, and further keywords:: the views of a frame, as those of a layout, see Segment#define. A view
    #                               without an offset begins at the next multiple of 64; if one has an
    #                               offset, all are placed as in a layout. The leading dimension may be
    #                               shorter in a frame, see Frame#set_length
    # lossless:: true: the writer waits for the slowest reader; false: it overwrites the oldest frame that
    #            nobody holds, and a late reader learns how many it has missed
    # slots:: 2 to 512: at least the history, and what all readers hold at the same time, and one more
    # history:: how many frames a reader gets that were published before it joined
    # stages:: 1 to 6; readers of one stage can pass frames on to another one, see Frame#pass_on
    # many_writers:: whether several processes may write it at once
    # lifetime, populate, mode, owner, group, entries, connection, backing:: those of the segment, see create
    #
    # Blocks until the memory is allocated. Raises Exists, NoSpace, Quota, Limit, Invalid, Denied,
    # Disconnected, and for views the errors of Segment#cast.
    def create_stream(name = nil, views = nil, lossless: false, slots: 8, history: 0, stages: 1, many_writers: false,
                      lifetime: :attached, populate: false, mode: nil, owner: nil, group: nil, entries: nil,
                      connection: nil, backing: nil, **more, &block)
      resolved, placed = frame_views(views || {}, more)
      access = Rights.change(mode, owner, group, entries)
      options = [lossless, slots, history, stages, many_writers, placed, lifetime, populate, access, backing]
      lend(Core.create_stream(name&.to_s || fresh_name, resolved, options, connection), &block)
    end

    # Opens a stream, and returns the Stream. With a block, yields and closes it like create_stream.
    #
    #   Shmview.open_stream("camera") { |stream| stream.each { |frame| p frame["image"].shape } }
    #
    # name:: that of the stream; "camera:1" stands for stage 1 of "camera"
    # access:: :read (take frames), :write (loan, publish and pass on as well) or :peek (follow a stream
    #          without disturbing anybody; frames may be overwritten then, see Frame#intact?)
    # timeout:: seconds to wait until the stream is created; nil: without limit
    # connection:: a Connection; nil: the default one
    #
    # Raises NotFound, Denied, Invalid (no stream, or no such stage), LayoutVersion, NoSlot, Limit, Quota,
    # Disconnected.
    def open_stream(name, access = :read, timeout: 0, connection: nil, &block)
      attempt = -> { Core.open_stream(name.to_s, access, connection) }
      lend(attach_until(name.to_s[/\A[^:]*/], timeout, connection, attempt), &block)
    end

    private

    # Returns the views of a frame as arguments of Core.create_stream, and whether they have offsets.
    def frame_views(views, more)
      both = views.to_h { |name, view| [name.to_s, view] }
      twice = more.keys.find { |name| both.key?(name.to_s) }
      raise ArgumentError, "view '#{twice}' is there twice" if twice

      both.update(more)
      raise ArgumentError, "create_stream needs the views of a frame: image: [\"uint8\", [480, 640, 3]]" if both.empty?

      placed = both.values.any? { |view| view.is_a?(Hash) ? view[:offset] : view.is_a?(Array) && view[2] }
      resolved = Layouts.resolve(frame: both)[0]["frame"]
      resolved.each { |view| view[2] = 0 } unless placed
      [resolved, placed]
    end
  end
end
