# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "etc"

# The users who may use a segment: owner, group, mode and entries.
module Shmview
  # mode:: bits like those of a file, without execute bits: 0640
  # owner, group:: uid and gid
  # entries:: a Hash: {"user:alice" => :write, "group:lab" => :read, "user:bob" => nil}
  Access = Struct.new(:mode, :owner, :group, :entries)

  # Converts between the arguments of users and those of the extension.
  module Rights # :nodoc:
    RIGHTS = { nil => 0, "read" => 2, "write" => 3 }.freeze
    KINDS = { "user" => 1, "group" => 2 }.freeze

    class << self
      # Returns a change as the extension takes it; nil if it changes nothing.
      def change(mode, owner, group, entries)
        return unless mode || owner || group || entries

        [mode, id("user", owner) { |name| Etc.getpwnam(name).uid },
         id("group", group) { |name| Etc.getgrnam(name).gid },
         entries&.map { |key, right| entry(key.to_s, right) }]
      end

      # Returns the Hash of entries with the names of users and groups; the number of one without a name.
      def entries(list)
        list.to_h { |kind, id, right| [kind == 1 ? "user:#{user(id)}" : "group:#{group(id)}", right] }
      end

      private

      # Returns the number of a user or group: of its name, or of a text of digits, or the number.
      def id(kind, value)
        return value if value.nil? || value.is_a?(Integer)
        return Integer(value, 10) if value.to_s.match?(/\A\d+\z/)

        yield value.to_s
      rescue ArgumentError
        raise Errors.make(Invalid::CODE, "there is no #{kind} '#{value}'", {})
      end

      def entry(key, right)
        kind, name = key.split(":", 2)
        if !KINDS[kind] || name.to_s.empty?
          raise ArgumentError, "an entry is for 'user:NAME' or 'group:NAME', not '#{key}'"
        end

        number = RIGHTS.fetch(right&.to_s) do
          raise ArgumentError, "the right of '#{key}' is :read, :write or nil, not #{right.inspect}"
        end
        [KINDS[kind], number, name]
      end

      def user(id)
        Etc.getpwuid(id).name
      rescue ArgumentError
        id
      end

      def group(id)
        Etc.getgrgid(id).name
      rescue ArgumentError
        id
      end
    end
  end
  private_constant :Rights

  class << self
    # Changes who may use the segment called +name+. Only the members that are given change. Returns
    # nil.
    #
    #   Shmview.set_access("demo", mode: 0o640, entries: { "user:alice" => :write, "user:bob" => nil })
    #
    # mode:: bits like those of a file, 0 to 0666: read (4) and write (2) for the owner, the group and
    #        all others. 2 alone is worth nothing
    # owner, group:: names or numbers. Only administrators may name another owner, or a group that the
    #                owner is not in
    # entries:: rights of further users and groups, which replace all earlier ones: a Hash with keys
    #           "user:NAME" and "group:NAME", and values :read, :write or nil. nil takes away what the
    #           mode gives. An entry of a user counts before the group, and all entries before the
    #           rights of others
    #
    # Attachments that exist stay. Looks up the names in the databases of this system, which may block;
    # then blocks for one round trip. Raises NotFound (also if this user may not see the segment),
    # Denied, Quota, Limit (more than 32 entries), Invalid, Disconnected.
    def set_access(name, mode: nil, owner: nil, group: nil, entries: nil, connection: nil)
      Core.set_access(name.to_s, Rights.change(mode, owner, group, entries) || [], connection)
    end

    # Returns the Access of the segment called +name+. Blocks for one round trip, and for look-ups of
    # names. Raises NotFound (also if this user may not see the segment), Invalid, Disconnected.
    def get_access(name, connection: nil)
      *head, entries = Core.access(name.to_s, connection)
      Access.new(*head, Rights.entries(entries))
    end
  end

  class Segment
    # Changes who may use the segment; returns self. The arguments and errors are those of
    # Shmview.set_access. Also raises Closed, and Invalid for foreign memory.
    def set_access(mode: nil, owner: nil, group: nil, entries: nil)
      Shmview.set_access(name, mode: mode, owner: owner, group: group, entries: entries, connection: _daemon)
      self
    end

    # Returns the mode, bits like those of a file. Asks the daemon, like owner, group and entries: blocks
    # and raises like Shmview.get_access. Also raises Closed, and Invalid for foreign memory.
    def mode = Shmview.get_access(name, connection: _daemon).mode

    # Returns the uid of the user who owns the segment. See mode.
    def owner = Shmview.get_access(name, connection: _daemon).owner

    # Returns the gid of its group. See mode.
    def group = Shmview.get_access(name, connection: _daemon).group

    # Returns the rights of further users and groups, a Hash as in Access. See mode.
    def entries = Shmview.get_access(name, connection: _daemon).entries
  end
end
