# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # One event. Its members are nil or 0 if the kind has no such member or the value is not known.
  #
  # serial:: grows from event to event, also from one daemon to the next unless the clock was set back
  # time:: a Time
  # kind:: :created, :attached, :detached (an attachment ended in order), :died (it ended without
  #        that), :owner_died (after it, if the client held the lock exclusively), :removed,
  #        :access_changed, :phase (another layout is current), :quota_refused (a client was refused),
  #        :recovered (the daemon started again), :subscribed (events are reported from now on; also
  #        after reconnecting), :lost (this subscription has missed events)
  # segment, id:: name and id of the segment
  # uid, pid, command:: the user, the process and the program that caused the event, or whose attachment
  #                     it was
  # attachment, access, slot:: id of the attachment, :peek, :read or :write, and its slot in the lock
  # held:: died, owner_died: :exclusive or :shared, if it held the lock
  # size:: created: bytes
  # generation, layout, switches:: phase: of the phase that is current now, its layout, and how many
  #                                switches there were since the last look
  # deaths, segments, attachments, lost:: recovered: clients that died while no daemon ran, segments and
  #                                       attachments that exist, segments that were lost. removed:
  #                                       attachments that keep the memory. lost: how many events
  # error, reason:: quota_refused: the number of the error, and a sentence with the figures
  # stream, stream_slots:: attached, detached, died, owner_died; created of a stream that the configuration
  #                        declares: :lossless or :latest, if the segment is a stream, and its slots
  # stream_role, held_frames:: died, owner_died: :writer, :reader or :both, and how many frames the client
  #                            held as a reader; they are free now
  Event = Struct.new(:serial, :time, :kind, :segment, :id, :uid, :pid, :command, :attachment, :access, :slot, :held,
                     :size, :generation, :layout, :switches, :deaths, :segments, :attachments, :lost, :error,
                     :reason, :stream, :stream_slots, :stream_role, :held_frames) do
    # Describes the event for people: the members that its kind has.
    def inspect
      has = to_h.reject { |name, value| value.nil? || (value == 0 && !%i[uid slot].include?(name)) }
      "#<Shmview::Event #{has.map { |name, value| "#{name}=#{value.inspect}" }.join(', ')}>"
    end
    alias_method :to_s, :inspect
  end

  # A subscription to the events of a daemon, which Shmview.events opens. Its first event is :subscribed.
  # If the daemon ends, the subscription continues with the next one. One thread at a time may use it; a
  # forked child cannot. It ends with close, or when it is collected.
  class Events
    include Enumerable

    # Returns the next Event, and waits at most +timeout+ seconds for it; nil: without limit. Waits
    # without the GVL; signals, Thread#raise, Thread#kill and Timeout.timeout end the wait, and lose no
    # event. Raises TimedOut, Closed, Busy (another thread waits), Disconnected (no daemon was there at
    # the timeout; the next call tries again), Limit, Quota, Denied.
    def next(timeout: nil)
      _next(timeout) || raise(Errors.make(TimedOut::CODE, "no event came in #{timeout} s", {}))
    end

    # Yields each Event as it comes, until close is called; without a block returns an Enumerator. Waits
    # and raises like next, whose +timeout+ is for each event.
    def each(timeout: nil)
      return enum_for(:each, timeout: timeout) unless block_given?

      until closed?
        begin
          event = self.next(timeout: timeout)
        rescue Closed
          raise unless closed? # in a forked child

          break
        end
        yield event
      end
      self
    end

    # Returns an Array of the events that have come. Does not wait. It is empty too if no daemon is
    # there; the next call tries again. Raises Closed, Busy, Limit, Quota, Denied.
    def poll
      found = []
      while (event = _next(0))
        found << event
      end
      found
    rescue Disconnected
      found
    end

    # Returns an IO that becomes readable when an event comes, so that IO.select takes a subscription.
    # Call poll then. The descriptor belongs to the subscription and is another one after each
    # :subscribed event, so pass the subscription to each IO.select. Raises Disconnected if no daemon is
    # there: poll connects again. Raises Closed, Busy.
    #
    #   IO.select([events, socket])
    #   events.poll.each { |event| ... }
    def to_io
      fd = _fd
      raise Errors.make(Disconnected::CODE, "no daemon is there now; poll connects again", {}) if fd.negative?

      IO.for_fd(fd, "r", autoclose: false)
    end
  end

  class << self
    # Subscribes to the events of the daemon: segments that are created and removed, clients that
    # attach, leave and die, switches of phases. Returns an Events. With a block, yields each Event until
    # the block breaks, and ends the subscription then.
    #
    #   Shmview.events("camera", kinds: %i[owner_died]) { |event| warn "#{event.pid} died"; break }
    #
    # names:: of the only segments that are wanted, at most 64; they need not exist yet. Events of no
    #         segment come too
    # kinds:: Symbols of Event#kind; nil: all
    # after:: a serial number: events after it come too, as far as the daemon remembers them; 0: all
    #         that it remembers; nil: none from before
    # timeout:: for the block: see Events#next
    # connection:: a Connection, which may be closed before the subscription ends; nil: the default one
    #
    # The user gets the events of the segments that the user may see. The daemon finds switches by
    # looking ten times a second; Segment#wait and Segment#change_io react at once. Blocks for one round
    # trip. Raises Quota (too many subscriptions), Unsupported, NoDaemon, Invalid, Disconnected.
    def events(*names, kinds: nil, after: nil, timeout: nil, connection: nil, &block)
      subscription = Core.events(names.flatten, Array(kinds), after, connection)
      return subscription unless block

      begin
        subscription.each(timeout: timeout, &block)
      ensure
        subscription.close
      end
    end
  end
end
