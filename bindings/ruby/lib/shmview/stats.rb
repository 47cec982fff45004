# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# list, exist? and stats: segments by name, without attaching them.
module Shmview
  # One attachment of a segment.
  #
  # attachment:: its id
  # pid:: of the process; 0 if it is in a pid namespace that the daemon cannot see
  # uid:: of the user who attached
  # command:: "" until the process has used the lock
  # access:: :peek, :read or :write
  # holds, waits:: :exclusive, :shared or nil: what it holds of the lock, and what one of its threads
  #                waits for
  # slot:: its place in the lock; -1 without one
  # since:: a Time, since when it holds or waits; nil: unknown
  AttachmentStats = Struct.new(:attachment, :pid, :uid, :command, :access, :holds, :waits, :slot, :since)

  # One segment, as Shmview.stats returns it.
  #
  # id:: a number that no other segment of the instance gets
  # size:: in bytes
  # is_named:: false if its name was removed, and only attachments keep the memory
  # lifetime:: :attached, :manual or :creator
  # mode, owner, group:: bits like those of a file, uid, gid
  # attachments, layouts:: how many there are
  # created:: a Time; nil: unknown
  # resident:: bytes of memory or swap that the data take
  # generation, phase:: of the phase, and the layout that is current, or nil
  # changes:: the counter of changes
  # owner_deaths:: exclusive holders that died, as far as it is known
  # parties:: an Array of at most 64 AttachmentStats; holders and waiters come first
  # label:: what its creator wrote for people, or ""
  # backing:: :file or :sealed
  # frozen:: :all: nobody can write; :future: nobody can begin to; nil
  # paid_by:: uid of the user whose process made the memory (own_memory); nil: the daemon did
  SegmentStats = Struct.new(:name, :id, :size, :is_named, :has_lock, :lifetime, :mode, :owner, :group,
                            :attachments, :layouts, :created, :resident, :generation, :phase, :changes,
                            :owner_deaths, :parties, :label, :backing, :frozen, :paid_by)

  # The daemon and the segments that this user may see. A number is -1 if only administrators may know
  # it.
  #
  # version, pid:: of the daemon
  # started, uptime:: a Time, and seconds
  # starts:: how often a daemon has started to serve these segments
  # n_all_segments:: including those that this user may not see
  # allocated:: bytes of all segments
  # memory_free, memory_limit:: bytes that new segments could get, and that /dev/shm or the daemon's
  #                             control group may hold
  # segments:: an Array of SegmentStats, in the order of their creation
  Stats = Struct.new(:version, :pid, :started, :uptime, :starts, :connections, :attachments,
                     :n_all_segments, :allocated, :memory_free, :memory_limit, :segments)

  class << self
    # Returns the SegmentStats of the segment called +name+; or without a name the Stats of the daemon,
    # with those of all segments that this user may see. Blocks for one round trip, or one for each
    # hundred segments. Raises NotFound, also if this user may not see the segment; NoDaemon,
    # Disconnected.
    def stats(name = nil, connection: nil)
      found = Core.stats(name&.to_s, connection)
      return found unless name

      found.segments.find(&:is_named) ||
        raise(Errors.make(NotFound::CODE, "no segment '#{name}'", { name: name.to_s }))
    end

    # Returns the names of the segments that this user may see, in the order of their creation. Blocks
    # and raises like stats.
    def list(connection: nil)
      stats(connection: connection).segments.select(&:is_named).map(&:name)
    end

    # Returns whether there is a segment called +name+ that this user may see. Blocks for one round
    # trip. Raises NoDaemon, Disconnected.
    def exist?(name, connection: nil)
      Core.stats(name.to_s, connection).segments.any?(&:is_named)
    end
  end
end
