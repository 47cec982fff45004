# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # A refusal or failure of libshmview. The message names what was requested and what was available.
  # There is one class for each SHMVIEW_ERR_* number, so that a program can rescue exactly one of
  # them.
  class Error < StandardError
    # The SHMVIEW_ERR_* number of libshmview; 0: none.
    CODE = 0

    # Returns the number of this error.
    def code
      @code || self.class::CODE
    end

    # Returns the facts of the failed call as a Hash, for instance <tt>{name: "demo"}</tt>. The
    # documentation of each class lists its facts.
    def facts
      @facts || {}
    end

    # Returns the fact of this name, or nil.
    def [](name)
      facts[name]
    end

    # Returns the name of the segment, or nil if the call had none.
    def name
      facts[:name]
    end
  end

  # The connection, segment or view was closed or released: open it again.
  class Closed < Error; end

  # An argument is not valid; the text names it.
  class Invalid < Error; CODE = 1; end
  # The daemon does not permit the request to this user. Facts: name.
  class Denied < Error; CODE = 2; end
  # There is no such segment, or none that this user may see; or no such field. Facts: name.
  class NotFound < Error; CODE = 3; end
  # A segment of this name exists already. Facts: name, size.
  class Exists < Error; CODE = 4; end

  # Too little shared memory. Facts: name; size: the bytes that were requested.
  class NoSpace < Error
    CODE = 5
    # Returns the bytes that are free, or nil if the daemon did not report them.
    def free
      figures[0]
    end
    # Returns the bytes that there are in all, or nil.
    def limit
      figures[1]
    end

    private

    # The figures are only in the daemon's text, because an error reply has no members for them.
    def figures
      message.match(/(\d+) are free, .* (?:holds?|may have) (\d+)/).to_a.drop(1).map(&:to_i)
    end
  end

  # A limit that no configuration changes is exceeded; the text names it.
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
  # Elements of the view would not be aligned; the text names the dimension and the byte.
  class Misaligned < Error; CODE = 12; end
  # The bytes do not divide into whole elements, or the shape needs another number of elements.
  class IllSized < Error; CODE = 13; end
  # The index or the bytes lie outside the view or the segment.
  class Bounds < Error; CODE = 14; end
  # A size does not fit into 64 bits.
  class Overflow < Error; CODE = 15; end
  # The daemon is too old for this request.
  class Unsupported < Error; CODE = 16; end
  # A quota of this user is exceeded; the text has the figures.
  class Quota < Error; CODE = 17; end
  # The timeout of a wait is over. Facts: name.
  class TimedOut < Error; CODE = 32; end
  # The calling thread does not hold the lock.
  class NotOwner < Error; CODE = 33; end
  # The call would wait for a lock that the calling thread itself holds.
  class Deadlock < Error; CODE = 34; end
  # The segment, or this access to it, has no lock.
  class NoLock < Error; CODE = 35; end
  # Writing read-only memory, or exporting it as writable, was refused.
  class ReadOnly < Error; CODE = 36; end
  # No shmviewd could be reached. Facts: path; nil is the default.
  class NoDaemon < Error; CODE = 37; end
  # The daemon closed the connection.
  class Disconnected < Error; CODE = 38; end
  # The program at the other end of the socket violates the protocol.
  class ProtocolError < Error; CODE = 39; end
  # The shared memory is truncated, or has a version that this library does not know.
  class LayoutVersion < Error; CODE = 40; end
  # The object is still in use; the text has the number of users.
  class Busy < Error; CODE = 41; end
  # The private memory of the process is exhausted.
  class NoMemory < Error; CODE = 42; end
  # A system call failed; the text names it.
  class SystemCallFailed < Error; CODE = 43; end
  # The lock is held too many times by this thread.
  class TooDeep < Error; CODE = 44; end
  # The view belongs to another phase than the current one. Open it again.
  class StaleView < Error; CODE = 45; end
  # The type of the elements cannot hold the value.
  class ConversionError < Error; CODE = 46; end
  # The view has strides or suboffsets that the consumer or the method cannot handle.
  class NotContiguous < Error; CODE = 47; end
  # The lock was lost while it was held, because the attachment had ended. Other programs may have
  # written. Close the segment and attach it again.
  class Lost < Error; CODE = 48; end
  # The function of shmview_on_wait() ended a wait. Interrupts of Ruby raise their own exceptions, so
  # only programs that call shmview_on_wait() themselves get this one.
  class Interrupted < Error; CODE = 49; end
  # Another process of an MPI job has failed. Only calls of libshmview-mpi have this error.
  class PeerFailed < Error; CODE = 50; end

  # The last exclusive holder of a lock died inside, or called unlock(repaired: false): the bytes may
  # be half written. A method that raises this holds nothing; see Segment#recover.
  class OwnerDied < Error
    # The process id and the command of that owner; 0 and "" if they are not known.
    attr_reader :pid, :command
    # The generation and the layout of the phase in which the owner died. phase is nil if another
    # phase has begun since then. It is also nil if the Segment does not know the name yet, because
    # taking a lock does not call the daemon; Segment#phase does.
    attr_reader :generation, :phase
    # The time of the death in seconds of Process::CLOCK_MONOTONIC; 0: unknown, or nobody
    # has died.
    attr_reader :when

    # Returns the time of the death as a Time, or nil if it is unknown.
    def died_at
      Errors.time_of(self.when)
    end
  end

  # A writer has ended the stage of a stream, and this reader has taken all frames. Facts: name.
  class StreamEnded < Error; end

  # A writer of a stream has died. No reader sees a frame that it had not published. Each Stream reports it
  # once; the next call goes on with the frames of the next writer. Facts: name.
  class WriterDied < Error
    # The process id and the command of the dead writer; 0 and "" if they are not known.
    attr_reader :pid, :command
    # The time at which the death was noticed, in seconds of Process::CLOCK_MONOTONIC; 0: unknown.
    attr_reader :when

    # Returns this time as a Time, or nil if it is unknown.
    def died_at
      Errors.time_of(self.when)
    end
  end

  # Makes the exceptions that the extension raises. Its methods are called from ext/shmview/error.c.
  module Errors # :nodoc:
    BY_CODE = Shmview.constants.map { |name| Shmview.const_get(name) }
                     .select { |c| c.is_a?(Class) && c < Error && c::CODE.positive? }
                     .to_h { |c| [c::CODE, c] }.freeze
    Ractor.make_shareable(BY_CODE)

    def self.make(code, text, facts)
      fill(BY_CODE.fetch(code, Error).new(text), code: code, facts: facts)
    end

    def self.make_death(name, pid, generation, phase, command, at)
      unrepaired = ", or gave it back unrepaired" if at.zero?
      died = OwnerDied.new("#{who(pid, command)} died while it held the lock of '#{name}'#{unrepaired}; " \
                           "see Segment#recover")
      fill(died, facts: { name: name }, pid: pid, generation: generation, phase: phase,
                 command: command, when: at)
    end

    def self.make_writer_death(name, pid, command, at)
      fill(WriterDied.new("#{who(pid, command)}, a writer of stream '#{name}', died"),
           facts: { name: name }, pid: pid, command: command, when: at)
    end

    def self.make_end(name)
      fill(StreamEnded.new("stream '#{name}' has ended"), facts: { name: name })
    end

    # Returns the Time of seconds of the monotonic clock, or nil for 0.
    def self.time_of(seconds)
      Time.now - (Process.clock_gettime(Process::CLOCK_MONOTONIC) - seconds) if seconds&.positive?
    end

    def self.who(pid, command)
      who = { 0 => "an unknown process", Process.pid => "a thread of this process" }.fetch(pid, "process #{pid}")
      command.empty? ? who : "#{who} (#{command})"
    end
    private_class_method :who

    def self.fill(error, **values)
      values.each { |key, value| error.instance_variable_set(:"@#{key}", value) unless value.nil? }
      error
    end
    private_class_method :fill
  end
  private_constant :Errors
end
