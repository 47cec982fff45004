# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # What libshmview refuses. The message is the whole story with names and figures.
  class Error < StandardError
    # libshmview's SHMVIEW_ERR_* number; 0: none.
    CODE = 0

    # The number of this error.
    def code
      @code || self.class::CODE
    end

    # What the call was about: a Hash, for instance <tt>{name: "demo"}</tt>; each class says what is
    # in it.
    def facts
      @facts || {}
    end

    # The fact of this name, or nil.
    def [](name)
      facts[name]
    end

    # The name of the segment, or nil where the call was about none.
    def name
      facts[:name]
    end
  end

  # The attachment, or what belongs to it, was closed or released: open it again.
  class Closed < Error; end

  # An argument that cannot be right.
  class Invalid < Error; CODE = 1; end
  # The daemon does not allow it. Facts: name.
  class Denied < Error; CODE = 2; end
  # There is no such segment, or none that this user may see; or no such field. Facts: name.
  class NotFound < Error; CODE = 3; end
  # A segment of this name exists already. Facts: name, size.
  class Exists < Error; CODE = 4; end

  # Not enough shared memory. Facts: name; size: bytes that were asked for.
  class NoSpace < Error
    CODE = 5
    # Bytes that are free, or nil if the daemon did not report it.
    def free
      figures[0]
    end
    # Bytes that there are in all, or nil.
    def limit
      figures[1]
    end

    private

    def figures
      message.match(/(\d+) are free, .* holds (\d+)/).to_a.drop(1).map(&:to_i)
    end
  end

  # A limit is exceeded: of segments, layouts, attachments; the text has it.
  class Limit < Error; CODE = 6; end
  # No such layout or view. Facts: layout, view.
  class NoLayout < Error; CODE = 7; end
  # A layout of this name exists already. Facts: layout.
  class LayoutExists < Error; CODE = 8; end
  # Every slot of the segment's lock is taken. Facts: name.
  class NoSlot < Error; CODE = 9; end
  # The daemon does not know the attachment.
  class NotAttached < Error; CODE = 10; end
  # Not a format of an element. Facts: format; at: the character, from 0.
  class FormatError < Error; CODE = 11; end
  # A view that is not aligned to its element; the text names the dimension and the byte.
  class Misaligned < Error; CODE = 12; end
  # Bytes that do not divide into whole elements, or a shape for another number of them.
  class IllSized < Error; CODE = 13; end
  # Outside: of the segment, or of the view.
  class Bounds < Error; CODE = 14; end
  # A size that does not fit.
  class Overflow < Error; CODE = 15; end
  # The daemon is too old for it.
  class Unsupported < Error; CODE = 16; end
  # A quota of this user is exceeded; the text has the figures.
  class Quota < Error; CODE = 17; end
  # The time is over. Facts: name.
  class TimedOut < Error; CODE = 32; end
  # The calling thread does not hold the lock.
  class NotOwner < Error; CODE = 33; end
  # The call would wait for itself.
  class Deadlock < Error; CODE = 34; end
  # The segment, or this access to it, has no lock.
  class NoLock < Error; CODE = 35; end
  # A change of read-only memory, or its export as writable, was refused.
  class ReadOnly < Error; CODE = 36; end
  # No shmviewd could be reached. Facts: path; nil is the default.
  class NoDaemon < Error; CODE = 37; end
  # The daemon closed the connection.
  class Disconnected < Error; CODE = 38; end
  # What answers does not keep the protocol.
  class ProtocolError < Error; CODE = 39; end
  # Shared memory of a layout version that this library does not know, or truncated.
  class LayoutVersion < Error; CODE = 40; end
  # Still in use; the text says by how many.
  class Busy < Error; CODE = 41; end
  # Out of (private) memory.
  class NoMemory < Error; CODE = 42; end
  # A system call failed; the text names it.
  class SystemCallFailed < Error; CODE = 43; end
  # The lock is held too many times by this thread.
  class TooDeep < Error; CODE = 44; end
  # The view is of a past phase, or of one that has not come. Open it again.
  class StaleView < Error; CODE = 45; end
  # A value that the element's type cannot hold without loss.
  class ConversionError < Error; CODE = 46; end
  # The view's strides are more than the consumer can bear.
  class NotContiguous < Error; CODE = 47; end
  # The lock was lost while it was held, because the attachment had ended: others may have written.
  # Close the segment and attach it again.
  class Lost < Error; CODE = 48; end
  # A wait was ended by shmview_on_wait(). An interrupt that ends a wait raises its own exception, so
  # only programs that call shmview_on_wait() themselves see this one.
  class Interrupted < Error; CODE = 49; end

  # The last exclusive holder of a lock died inside: the bytes may be half written. What raises
  # this holds nothing; see Segment#recover.
  class OwnerDied < Error
    # Who it was; 0 and "" where nobody knows any more.
    attr_reader :pid, :command
    # Of the phase it died in. phase is nil where that is not the current one any more, or where the
    # Segment does not know its name yet: taking a lock asks nobody. Segment#phase asks the daemon.
    attr_reader :generation, :phase
    # Seconds, as Process.clock_gettime(Process::CLOCK_MONOTONIC) has them.
    attr_reader :when
  end

  # What the extension raises.
  module Errors # :nodoc:
    BY_CODE = Shmview.constants.map { |name| Shmview.const_get(name) }
                     .select { |c| c.is_a?(Class) && c < Error && c::CODE.positive? }
                     .to_h { |c| [c::CODE, c] }.freeze
    Ractor.make_shareable(BY_CODE)

    def self.make(code, text, facts)
      fill(BY_CODE.fetch(code, Error).new(text), code: code, facts: facts)
    end

    def self.make_death(name, pid, generation, phase, command, at)
      who = pid.zero? ? "an unknown process" : "process #{pid}"
      who += " (#{command})" unless command.empty?
      died = OwnerDied.new("#{who} died while it held the lock of '#{name}'; see Segment#recover")
      fill(died, facts: { name: name }, pid: pid, generation: generation, phase: phase,
                 command: command, when: at)
    end

    def self.fill(error, **values)
      values.each { |key, value| error.instance_variable_set(:"@#{key}", value) unless value.nil? }
      error
    end
    private_class_method :fill
  end
  private_constant :Errors
end
