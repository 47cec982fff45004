# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # The version of libshmview that is loaded.
  VERSION = Core.version

  # One process in a lock's status, by what it wrote about itself. role: "holds", "holds shared",
  # "waits" or "waits to share"; since: seconds of the monotonic clock, 0: unknown.
  LockParty = Struct.new(:role, :pid, :command, :slot, :since)

  # Who holds a lock and who waits. held: exclusively; dirty: the next owner will be told that one
  # died, or one is inside; parties: Array of LockParty; n_parties: that there are, whether or not
  # all are told.
  LockStatus = Struct.new(:held, :owner_is_dead, :dirty, :parties, :n_parties)

  # What View#summary found. n: elements; n_nan: of which NaN, which count for nothing else; min,
  # max: of integers exact; sum: of integers the exact one, rounded once.
  Summary = Struct.new(:n, :n_nan, :min, :max, :sum)

  @connecting = Thread::Mutex.new

  class << self
    # The Connection of this process that create and attach use by themselves, made when it is
    # asked for first; one of a path is made anew each time. +start+: whether a session daemon is
    # started where none runs. Raises NoDaemon, Denied, Quota, ProtocolError.
    def connect(path = nil, start: true)
      return Connection.new(path, start: start) if path

      key = :"__shmview_connection__"
      return (Ractor.current[key] = fresh(Ractor.current[key], start)) unless main_ractor?

      @connecting.synchronize { @connection = fresh(@connection, start) }
    end

    # Creates the segment called +name+, zeroed, and attaches it for writing. With a block, yields
    # the segment, closes it at the end, and returns what the block returns.
    #
    # name:: 1 to 128 letters, digits, ".", "_", "-", no dot in front; nil: one that nobody has
    # size:: bytes, 1 or more; nil: what the layouts need. All of it is committed at once, so that
    #        no later access can run out of memory
    # layouts:: a Hash of layouts that are declared at once, see Segment#define
    # phase:: the layout that is current from the beginning; nil: none
    # lifetime:: :attached (it goes with its last attachment), :manual (when it is removed) or
    #            :creator (with the connection that created it)
    # lock:: false: only bytes, without lock, phases and changes
    # populate:: every page is mapped now instead of at first touch
    # connection:: a Connection; nil: the process's own
    #
    # Blocks until the memory is allocated. Raises Exists, NoSpace (with size, free and limit),
    # Quota, Limit, Invalid, Denied, Disconnected; and for layouts what Segment#define raises.
    def create(name = nil, size = nil, layouts: nil, phase: nil, lifetime: :attached, lock: true,
               populate: false, connection: nil, &block)
      resolved, needed = Layouts.resolve(layouts || {})
      size ||= needed if needed.positive?
      raise ArgumentError, "create needs a size, or layouts that have one" unless size

      segment = Core.create(name&.to_s || fresh_name, size, lifetime, lock, populate, connection)
      prepare(segment, resolved, phase, lifetime)
      lend(segment, &block)
    end

    # Attaches the segment called +name+. With a block as create.
    #
    # readonly:: its bytes cannot be changed, its lock can be taken: the same as access: :read
    # access:: :peek (no lock, nothing can be disturbed), :read or :write (the default)
    # timeout:: seconds to wait for a segment of this name to be created; nil: as long as it takes
    # populate, connection:: as for create
    #
    # Raises NotFound (also where this user may not see it), Denied, NoSlot, Limit, Quota, Invalid,
    # LayoutVersion, Disconnected.
    def attach(name, readonly: false, access: nil, timeout: 0, populate: false, connection: nil,
               &block)
      raise ArgumentError, "access: :write is not readonly" if readonly && access&.to_s == "write"

      access ||= readonly ? :read : :write
      lend(attach_until(timeout) { Core.attach(name.to_s, access, populate, connection) }, &block)
    end

    # A View of a fresh segment of +nbytes+ bytes, zeroed, whose name nobody has. view.segment is
    # the segment, with its lock. As create and Segment#cast in everything else.
    def make(nbytes, format, shape = nil, connection: nil, **cast)
      create(nil, nbytes, connection: connection).cast(format, shape, **cast)
    end

    # Removes the name of a segment at once; the memory goes with the last attachment. Returns nil.
    # Blocks for one round trip. Raises NotFound, Denied, Invalid, Disconnected.
    def remove(name, connection: nil)
      Core.remove(name.to_s, connection)
    end

    private

    def main_ractor?
      Ractor.current == MAIN_RACTOR
    end

    def fresh(connection, start)
      connection && !connection.closed? ? connection : Connection.new(nil, start: start)
    end

    def fresh_name
      "rb-#{Process.pid}-#{Random.bytes(8).unpack1('H*')}"
    end

    def prepare(segment, resolved, phase, lifetime)
      done = false
      resolved.each { |layout, views| segment.send(:_define, layout, views) }
      segment.send(:_layouts=, Layouts.names(resolved))
      segment.synchronize { segment.switch(phase) } if phase
      done = true
    ensure
      unless done
        segment.remove unless lifetime.to_s == "attached"
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

    def attach_until(timeout)
      last = timeout && Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout
      pause = 0.001
      begin
        yield
      rescue NotFound
        left = last ? last - Process.clock_gettime(Process::CLOCK_MONOTONIC) : pause
        raise unless left.positive?

        sleep([pause, left].min)
        pause = [pause * 2, 0.05].min
        retry
      end
    end
  end

  MAIN_RACTOR = Ractor.current
  private_constant :MAIN_RACTOR, :Core
end
