# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # The version of libshmview that is loaded.
  VERSION = Core.version

  # One process in the status of a lock, as that process described itself. role: "holds", "holds
  # shared", "waits" or "waits to share"; since: seconds of the monotonic clock, 0: unknown.
  LockParty = Struct.new(:role, :pid, :command, :slot, :since)

  # The holders and the waiters of a lock. held: an owner holds it exclusively; dirty: an owner is
  # inside, or the next one will get OwnerDied; parties: an Array of at most 256 LockParty;
  # n_parties: how many there are in all.
  LockStatus = Struct.new(:held, :owner_is_dead, :dirty, :parties, :n_parties)

  # The result of View#summary. n: how many elements; n_nan: how many of them are NaN, which min, max
  # and sum ignore. min and max of integers are exact; their sum is exact and then rounded once.
  Summary = Struct.new(:n, :n_nan, :min, :max, :sum)

  @connecting = Thread::Mutex.new

  class << self
    # Returns the Connection that create and attach use by default. The first call makes it; a
    # Ractor other than the main one has its own, and a handler of Signal.trap can only use one that
    # exists already. With a path, makes a new Connection each time.
    # +start+: whether to start a session daemon if none runs. Raises NoDaemon, Denied, Quota,
    # ProtocolError.
    def connect(path = nil, start: true)
      return Connection.new(path, start: start) if path

      key = :"__shmview_connection__"
      return (Ractor.current[key] = fresh(Ractor.current[key], start)) unless main_ractor?

      # without the mutex, which Ruby refuses to a handler of Signal.trap
      return @connection if @connection && !@connection.closed?

      @connecting.synchronize { @connection = fresh(@connection, start) }
    end

    # Creates the segment called +name+, zeroed, and attaches it for writing. With a block, yields
    # the segment, closes it at the end, and returns what the block returns.
    #
    # name:: 1 to 128 letters, digits, ".", "_", "-", not beginning with a dot; nil: a random one
    # size:: bytes, 1 or more; nil: what the layouts need. All of them are committed now, so that no
    #        later access can fail for lack of memory
    # layouts:: a Hash of layouts to declare, see Segment#define
    # phase:: the layout that is current from the beginning; nil: none
    # lifetime:: :attached (the segment ends with its last attachment), :manual (when it is removed)
    #            or :creator (with the connection that created it)
    # lock:: false: only bytes, without a lock, phases and changes
    # populate:: true: maps every page now and not at its first use
    # mode, owner, group, entries:: who may use the segment, as for set_access; nil: the mode that the
    #                               daemon is configured with (0600 by default), and this user and group
    # label:: a text for people, which stats has: at most 63 bytes of UTF-8 without control characters;
    #         nil: none
    # connection:: a Connection; nil: the default one of this process
    # backing:: :file (in /dev/shm) or :sealed (of a size that nobody can change; systemd or a keeper
    #           process holds it while no daemon runs); nil: what the daemon is configured with
    # own_memory:: true: this process makes the memory, which is sealed then, and its control group is
    #              charged for it instead of the daemon's
    # huge:: true: huge pages where there are some; :required: raises NoSpace where there are none
    # numa:: :local (the node of this thread), :interleaved (all nodes in turn) or the number of a node;
    #        Segment#placement has what the segment got
    #
    # Blocks until the memory is allocated. Raises Exists, NoSpace (with size, free and limit),
    # Quota, Limit, Invalid, Denied, Disconnected, and the errors of Segment#define for layouts.
    def create(name = nil, size = nil, layouts: nil, phase: nil, lifetime: :attached, lock: true,
               populate: false, mode: nil, owner: nil, group: nil, entries: nil, label: nil, connection: nil,
               backing: nil, own_memory: false, huge: false, numa: nil, &block)
      resolved, needed = Layouts.resolve(layouts || {})
      size ||= needed if needed.positive?
      raise ArgumentError, "create needs a size, or layouts that have one" unless size

      access = Rights.change(mode, owner, group, entries)
      segment = Core.create(name&.to_s || fresh_name, size, lifetime, lock, populate, access,
                            label && label.to_s.encode("UTF-8"), connection, backing, own_memory,
                            huge, numa)
      open_or_discard(segment, lifetime: lifetime) { prepare(segment, resolved, phase) }
      lend(segment, &block)
    end

    # Attaches the segment called +name+. With a block, yields and closes it like create.
    #
    # readonly:: true means access: :read
    # access:: :peek (see the bytes; cannot disturb others), :read (and take the lock) or :write (and
    #          change the bytes; the default)
    # timeout:: seconds to wait until a segment of this name is created; nil: without limit
    # populate, connection:: as for create
    #
    # Raises NotFound (also if this user must not see the segment), Denied, NoSlot, Limit, Quota,
    # Invalid, LayoutVersion, Disconnected.
    def attach(name, readonly: false, access: nil, timeout: 0, populate: false, connection: nil,
               &block)
      raise ArgumentError, "access: :write is not readonly" if readonly && access&.to_s == "write"

      access ||= readonly ? :read : :write
      attempt = -> { Core.attach(name.to_s, access, populate, connection) }
      lend(attach_until(name, timeout, connection, attempt), &block)
    end

    # Creates a segment of +nbytes+ zeroed bytes, and returns a View of it. view.segment is the segment,
    # with its lock.
    #
    #   Shmview.make(4000, "f4")                       # as many elements as there is room for
    #   Shmview.make(format: "f4", shape: [100, 10])   # as many bytes as the elements need
    #   Shmview.make(format: view)                     # the format and shape of a view, without its values
    #
    # nbytes:: nil: what the shape needs
    # format, shape, strides, offset, readonly:: as for Segment#cast; format may also be a View or another
    #                                            object that exports a MemoryView
    # options:: +name+ of the segment (nil: a random one), and the options of create
    #
    # Blocks and raises like create and Segment#cast.
    def make(nbytes = nil, a_format = "B", a_shape = nil, format: a_format, shape: a_shape, strides: nil, offset: 0,
             readonly: false, name: nil, **options)
      if (like = Core.foreign(format))
        shape ||= like.shape
        format = like.format
      end
      unless nbytes
        raise ArgumentError, "make needs a number of bytes or a shape" unless shape

        view = { format: format, shape: shape, strides: strides, offset: offset }
        nbytes = [Layouts.resolve(make: { view: view })[1], 1].max # a segment has at least one byte
      end
      segment = create(name, nbytes, **options)
      open_or_discard(segment, options) do
        segment.cast(format, shape, strides: strides, offset: offset, readonly: readonly)
      end
    end

    # Removes the name of a segment at once; the memory is freed with the last attachment. Returns
    # nil. Blocks for one round trip. Raises NotFound, Denied, Invalid, Disconnected.
    def remove(name, connection: nil)
      Core.remove(name.to_s, connection)
    end

    private

    def main_ractor?
      Ractor.current == MAIN_RACTOR
    end

    # Returns connection, or a new one if it is nil or closed.
    def fresh(connection, start)
      connection && !connection.closed? ? connection : Connection.new(nil, start: start)
    end

    def fresh_name
      "rb-#{Process.pid}-#{Random.bytes(8).unpack1('H*')}"
    end

    # Declares the layouts and begins the phase of a new segment.
    def prepare(segment, resolved, phase)
      resolved.each { |layout, views| segment.send(:_define, layout, views) }
      segment.send(:_layouts=, Layouts.names(resolved))
      segment.synchronize { segment.switch(phase) } if phase
    end

    # Returns the value of the block, which prepares a new segment. If anything leaves the block, closes
    # and removes the segment, so that no half prepared one keeps the name. A segment of lifetime
    # attached ends by the close alone.
    def open_or_discard(segment, options)
      done = false
      value = yield
      done = true
      value
    ensure
      unless done
        segment.remove unless options.fetch(:lifetime, "attached").to_s == "attached"
        segment.close
      end
    end

    def lend(segment)
      return segment unless block_given?

      begin
        yield segment
      ensure
        segment.close
      end
    end

    # Calls attempt until it no longer raises NotFound or the timeout is over. The wait ends with each
    # event of a segment of this name. The subscription begins before an attempt, because a segment
    # could be created between the two otherwise. Polls if the daemon has no room for a subscription.
    def attach_until(name, timeout, connection, attempt)
      attempt.call
    rescue NotFound
      raise if timeout&.zero?

      last = timeout && now + timeout
      subscription = begin
        events(name.to_s, kinds: %i[created access_changed], connection: connection)
      rescue Limit, Quota, Unsupported
        nil
      end
      begin
        attempt.call
      rescue NotFound
        left = last && [last - now, 0].max
        raise if left&.zero?

        subscription ? await_event(subscription, left) : sleep([0.05, left].compact.min)
        retry
      ensure
        subscription&.close
      end
    end

    # Returns after the next event, or after the time.
    def await_event(subscription, left)
      subscription.next(timeout: left)
    rescue TimedOut, Disconnected
      nil
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  MAIN_RACTOR = Ractor.current
  private_constant :MAIN_RACTOR, :Core
end
