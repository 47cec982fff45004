# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# Each test file has a daemon of its own. After each test, no descriptor, mapping or segment may be
# left.

require "io/wait"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"
require "shmview"

SANITIZED = ENV["SHMVIEW_SANITIZE"].to_s != ""

# Waits until the block returns a true value, and returns it. The argument what names it in the error: a text, or a Proc
# that returns one.
def await(what = "it", seconds: 60)
  last = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  until (found = yield)
    raise "#{what.is_a?(Proc) ? what.call : what} has not come in #{seconds} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > last

    sleep 0.005
  end
  found
end

# A shmviewd in a directory of its own. It ends with this process, even if this process is killed.
class Daemon
  attr_reader :socket

  def initialize(directory)
    @socket = File.join(directory, "io.shmview")
    @log = File.join(directory, "log")
    start
  end

  def start
    begins = File.exist?(@log) ? File.size(@log) : 0
    # only this process has the keeper's standard input; when that ends, the keeper ends the daemon
    read, @keep = IO.pipe
    script = '"$@" & pid=$!; echo $pid >&3; read -r _; kill -INT $pid; wait $pid'
    from, to = IO.pipe
    @keeper = Process.spawn("sh", "-c", script, "sh", ENV.fetch("SHMVIEWD"), "--socket", @socket,
                            in: read, out: [@log, "a"], err: [@log, "a"], 3 => to)
    [read, to].each(&:close)
    @pid = Integer(from.gets)
    from.close
    await("the daemon") { said[begins..].include?(", listening on ") }
    @instance = said[begins..][/, instance ([^,]*),/, 1]
  end

  attr_reader :pid

  def said = File.read(@log)

  def stop
    @keep.close
    Process.wait(@keeper)
    raise "the daemon failed: #{said}" unless $?.success?
    raise "the daemon left #{objects}" unless objects.empty?
  end

  # Returns the objects of its segments in /dev/shm.
  def objects
    directory = "/dev/shm/shmview.#{@instance}"
    Dir.exist?(directory) ? Dir.children(directory).sort - ["+daemon", "+presence"] : []
  end
end

DIRECTORY = Dir.mktmpdir("shmview-rb-")
DAEMON = Daemon.new(DIRECTORY)
ENV["SHMVIEW_SOCKET"] = DAEMON.socket
STARTED_BY = Process.pid
Minitest.after_run do
  next if Process.pid != STARTED_BY

  Shmview.connect.close unless ObjectSpace.each_object(Shmview::Segment).any? { |s| !s.closed? }
  DAEMON.stop
  FileUtils.remove_entry(DIRECTORY)
end

# Checks that after each test there are as many descriptors, mappings and objects as before.
class ShmviewTest < Minitest::Test
  def setup
    Shmview.connect.ping # the connection of the process, which stays
    collect
    @before = [descriptors, mappings]
  end

  def teardown
    return collect(consumers: true) unless passed?

    last = nil
    # the machine's stack may refer to an object for a while
    await(-> { "the end of what the test made: #{last.flatten(1) - @before.flatten(1)}" }) do
      collect
      last = [descriptors, mappings]
      last == @before
    end
    await("the end of every segment") { DAEMON.objects.empty? } if mappings.empty?
  end

  # Closes every stream and segment that is left, because a conservative collector may find references to it.
  def collect(consumers: false)
    GC.start
    ObjectSpace.each_object(Shmview::MemoryView, &:release) if consumers
    ObjectSpace.each_object(Shmview::Stream) do |stream|
      stream.close
    rescue Shmview::Busy
      nil
    end
    ObjectSpace.each_object(Shmview::Segment) do |segment|
      segment.close unless segment.frozen?
    rescue Shmview::Busy
      nil
    end
    GC.start
  end

  def descriptors
    Dir.children("/proc/self/fd").filter_map do |fd|
      [fd.to_i, File.readlink("/proc/self/fd/#{fd}").split(":[")[0]]
    rescue Errno::ENOENT
      nil
    end.sort
  end

  def mappings
    Shmview.trim
    File.readlines("/proc/self/maps").filter_map { |line| line[%r{/shmview\.\S+}] }.sort
  end

  # Returns the value of the block in a forked child, which ends without the handlers of the tests.
  # Kills a child that has not ended in time.
  def in_child(seconds: 150)
    read, write = IO.pipe
    pid = fork do
      read.close
      write.binmode.write(Marshal.dump(yield))
      write.close
      exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException
      warn e.full_message
      exit!(1)
    end
    write.close
    said = read.read if read.wait_readable(seconds)
    Process.kill(:KILL, pid) unless said
    read.close
    Process.wait(pid)
    assert said, "the child has not ended in #{seconds} s"
    assert_predicate $?, :success?
    Marshal.load(said)
  end

  # Runs source in an unrelated process; returns what it prints.
  def run_ruby(source, *arguments)
    out, err, status = Open3.capture3(RbConfig.ruby, "-w", "-rshmview", "-e", source, *arguments.map(&:to_s))
    assert_predicate status, :success?, err
    assert_empty err
    out
  end

  # Yields the pid of a process that is inside the lock of the segment.
  def with_holder(name, extra = "")
    source = "seg = Shmview.attach(ARGV[0]); seg.lock; #{extra}; puts :inside; $stdout.flush; $stdin.read"
    Open3.popen2(RbConfig.ruby, "-rshmview", "-e", source, name) do |input, output, thread|
      assert_equal "inside\n", output.gets
      yield thread.pid, -> { kill(thread) }
    ensure
      kill(thread)
      input.close
    end
  end

  def kill(thread)
    Process.kill(:KILL, thread.pid) if thread.alive?
    thread.join
  end
end
