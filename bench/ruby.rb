#!/usr/bin/ruby
# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# The Ruby package beside Ruby's own classes, in one run.
#
#     make bench-ruby
#     RUBYLIB=build/ruby ruby bench/ruby.rb [--quick] [--only PATTERN] [--json] [--check] [--daemon PATH]
#
# The two sides of a row take turns. ours and the reference are medians over the rounds in
# nanoseconds, the cost of an empty loop taken off; ratio is ours divided by the reference round by
# round, then the median; min..max are the extreme rounds. Less is better.

require "fiddle"
require "json"
require "monitor"
require "optparse"
require "shmview"
require "tmpdir"

Warning[:experimental] = false # IO::Buffer, a reference

MIB = 1 << 20
ROWS = []

Row = Struct.new(:name, :reference, :target, :make)

# The block makes two lambdas, ours and the reference's: the nanoseconds that one operation takes.
# Called again for each run.
def row(name, reference, target, &make)
  ROWS << Row.new(name, reference, target, make)
end

def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

def median(values) = values.sort[values.size / 2]

# --- One operation in a loop -----------------------------------------------------------------

# Collects garbage before the block and not during it, because otherwise the collector would slow
# down one side or the other by chance.
def without_collector
  GC.start
  GC.disable
  yield
ensure
  GC.enable
end

# A lambda that runs the statement, which knows x and y, n times, and returns nanoseconds for each,
# less the loop.
def loop_of(statement, n, x, y = nil)
  source = "lambda { i = 0; t = clock; while i < #{n}; %s; i += 1; end; clock - t }"
  measured = eval(format(source, statement), binding)
  idle = eval(format(source, "nil"), binding)
  -> { [1, without_collector(&measured) - idle.call].max.fdiv(n) }
end

# An Array that the interpreter has no instructions of its own for: it calls Array#[] as any method.
class Called < Array; end

def segment = Shmview.create(nil, 8000)
def numbers(format, kind) = kind.new(1000, "df".include?(format) ? 0.5 : 7)

%w[d f i B].each do |format|
  row("view[i], #{format}", "Array#[], called", 1.3) do
    [loop_of("x[5]", 20_000, segment.cast(format)), loop_of("x[5]", 20_000, numbers(format, Called))]
  end
  row("view[i] = x, #{format}", "Array#[]=, called", 1.3) do
    value = numbers(format, Array)[0]
    [loop_of("x[5] = y", 20_000, segment.cast(format), value), loop_of("x[5] = y", 20_000, numbers(format, Called), value)]
  end
end
row("view[i], d", "Array, an instruction", nil) do
  [loop_of("x[5]", 20_000, segment.cast("d")), loop_of("x[5]", 20_000, numbers("d", Array))]
end
row("view[i, j]", "Array#[] twice, called", 1.3) do
  rows = Called.new(10) { Called.new(100, 0.5) }
  [loop_of("x[5, 6]", 20_000, segment.cast("d", [10, 100])), loop_of("x[5][6]", 20_000, rows)]
end
row("view.each { }", "Array#each", 1.3) do
  [loop_of("x.each { |e| e }", 100, segment.cast("d")), loop_of("x.each { |e| e }", 100, numbers("d", Array))]
end
row("view.to_a", "String#unpack", 1.2) do
  [loop_of("x.to_a", 500, segment.cast("d")), loop_of("x.unpack('d*')", 500, "\0" * 8000)]
end
row("view[0..] = Array of 1000", "Array#pack", 1.2) do
  values = Array.new(1000, 1.5)
  [loop_of("x[0..] = y", 500, segment.cast("d"), values), loop_of("y.pack('d*')", 500, nil, values)]
end
row("view[a..b]", "Array#[], called", nil) do
  [loop_of("x[5..900]", 5000, segment.cast("d")), loop_of("x[5..900]", 5000, numbers("d", Called))]
end

# --- Bytes -----------------------------------------------------------------------------------

# memcpy itself, into a String that is there, and from it.
MEMCPY = Fiddle::Function.new(Fiddle::Handle::DEFAULT["memcpy"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T],
                              Fiddle::TYPE_VOIDP)

[["64 KiB", 1 << 16, 200], ["16 MiB", 1 << 24, 5]].each do |size, bytes, n|
  view = -> { Shmview.create(nil, bytes).cast("B").fill(7) }
  row("view.get_string, #{size}", "IO::Buffer#get_string", 1.1) do
    [loop_of("x.get_string", n, view.call), loop_of("x.get_string", n, IO::Buffer.new(bytes).clear(7))]
  end
  row("view.set_string, #{size}", "IO::Buffer#set_string", 1.1) do
    string = "\7" * bytes
    [loop_of("x.set_string(y)", n, view.call, string), loop_of("x.set_string(y)", n, IO::Buffer.new(bytes), string)]
  end
  row("view.get_string(s), #{size}", "memcpy by Fiddle", 1.1) do
    here, there = Array.new(2) { "\7" * bytes }
    [loop_of("x.get_string(y)", n, view.call, "\7" * bytes), loop_of("MEMCPY.call(x, y, #{bytes})", n, here, there)]
  end
end

# --- The lock --------------------------------------------------------------------------------

row("segment.synchronize { }", "Mutex#synchronize", 0.8) do
  [loop_of("x.synchronize {}", 20_000, segment), loop_of("x.synchronize {}", 20_000, Mutex.new)]
end
row("segment.lock, unlock", "Mutex#synchronize", 0.8) do
  [loop_of("x.lock; x.unlock", 20_000, segment), loop_of("x.synchronize {}", 20_000, Mutex.new)]
end
row("segment.lock, unlock", "Mutex#lock, unlock", nil) do
  [loop_of("x.lock; x.unlock", 20_000, segment), loop_of("x.lock; x.unlock", 20_000, Mutex.new)]
end
row("segment.synchronize { }", "Monitor#synchronize", nil) do
  [loop_of("x.synchronize {}", 20_000, segment), loop_of("x.synchronize {}", 20_000, Monitor.new)]
end
row("segment.synchronize { }", "File#flock, LOCK_UN", 0.2) do
  file = File.open(__FILE__)
  [loop_of("x.synchronize {}", 5000, segment),
   loop_of("x.flock(File::LOCK_EX); x.flock(File::LOCK_UN)", 5000, file)]
end
row("segment.shared { }", "Mutex#synchronize", nil) do
  [loop_of("x.shared {}", 20_000, segment), loop_of("x.synchronize {}", 20_000, Mutex.new)]
end

# --- With the daemon -------------------------------------------------------------------------

# A file in /dev/shm as an IO::Buffer: what Ruby has for memory that processes share.
def mapped(path)
  File.open(path, "r+") { |file| IO::Buffer.map(file, MIB).free }
end

row("create, close", "a file, IO::Buffer.map", nil) do
  zeros = "\0" * MIB # its memory is committed, too
  path = "/dev/shm/shmview-bench-#{Process.pid}"
  [loop_of("Shmview.create(y, MIB).close", 100, nil, "bench-create"),
   loop_of("File.binwrite(y, x); mapped(y); File.unlink(y)", 100, zeros, path)]
end
row("attach, close", "open, IO::Buffer.map", nil) do
  held = Shmview.create("bench-attach", MIB)
  file = File.open("/dev/shm", File::RDWR | File::TMPFILE).tap { |f| f.truncate(MIB) }
  [loop_of("Shmview.attach(x.name).close", 100, held),
   loop_of("mapped(y)", 100, file, "/proc/self/fd/#{file.fileno}")]
end

# --- A frame from one process to another -----------------------------------------------------

FRAMES = 100

def in_child
  pid = fork do
    yield
    exit!(0)
  end
  -> { Process.wait(pid) }
end

def our_frames
  seg = Shmview.create(nil, MIB)
  view = seg.cast("B")
  ended = in_child do
    mine = Shmview.attach(seg.name)
    frame = mine.cast("B")
    (0...2 * FRAMES).step(2) do |seen|
      mine.wait(change: seen)
      exit!(1) unless frame[MIB - 1] == seen % 256
      mine.notify
    end
  end
  times = (0...2 * FRAMES).step(2).map do |seen|
    t = clock
    view.fill(seen % 256)
    seg.notify
    nil while seg.wait(change: seen + 1) != seen + 2
    clock - t
  end
  ended.call
  seg.close
  median(times)
end

def their_frames
  there, here = Array.new(2) { IO.pipe }
  ended = in_child do
    FRAMES.times do |i|
      exit!(1) unless there[0].read(MIB).getbyte(MIB - 1) == i % 256
      here[1].syswrite("x")
    end
  end
  times = FRAMES.times.map do |i|
    frame = (i % 256).chr * MIB
    t = clock
    there[1].write(frame)
    here[0].sysread(1)
    clock - t
  end
  ended.call
  [*there, *here].each(&:close)
  median(times)
end

row("1 MiB there, wake-up back", "IO.pipe", 0.8) { [method(:our_frames), method(:their_frames)] }

# --- The table -------------------------------------------------------------------------------

def measure(make, rounds)
  ours, theirs = make.call
  ours.call
  theirs.call
  pairs = Array.new(rounds) { [ours.call, theirs.call] }
  ratios = pairs.map { |a, b| a / b.to_f }
  [median(pairs.map(&:first)), median(pairs.map(&:last)), median(ratios), ratios.min, ratios.max]
end

# Yields while a daemon of its own runs.
def with_daemon(program)
  Dir.mktmpdir("shmview-bench-") do |folder|
    ENV["SHMVIEW_SOCKET"] = File.join(folder, "io.shmview")
    ready, told = IO.pipe
    pid = spawn(program, "--socket", ENV["SHMVIEW_SOCKET"], "--ready-fd", told.fileno.to_s,
                told => told, out: File::NULL, err: File::NULL)
    told.close
    abort "#{program} does not start" unless ready.read == "\n"
    begin
      yield
    ensure
      Process.kill(:INT, pid)
      Process.wait(pid)
    end
  end
end

def as_json(row, ours, theirs, ratio, low, high, met)
  result = { what: row.name, ours: ours, unit: "ns", reference_name: row.reference, reference: theirs,
             ratio: ratio, ratio_min: low, ratio_max: high }
  result.merge!(target_of: "ratio", bound: "most", target: row.target, ok: met) if row.target
  result
end

def main
  options = { rounds: 21, only: "*", daemon: ENV.fetch("SHMVIEW_DAEMON", "shmviewd") }
  OptionParser.new do |parser|
    parser.on("--quick", "a quarter of the rounds") { options[:quick] = true }
    parser.on("--rounds N", Integer) { |n| options[:rounds] = n }
    parser.on("--only PATTERN", "rows whose name holds this shell pattern") { |p| options[:only] = p }
    parser.on("--json", "print one JSON object, as bench does") { options[:json] = true }
    parser.on("--check", "exit status 1 if a target is missed") { options[:check] = true }
    parser.on("--daemon PATH") { |path| options[:daemon] = path }
  end.parse!
  rounds = [3, options[:rounds] / (options[:quick] ? 4 : 1)].max
  missed = 0
  results = []
  with_daemon(options[:daemon]) do
    unless options[:json]
      puts format("%-28s %10s %-28s %10s %6s %12s target", "row", "ours ns", "reference", "ns", "ratio", "min..max")
    end
    ROWS.each do |row|
      next unless File.fnmatch("*#{options[:only]}*", row.name)

      a, b, ratio, low, high = measure(row.make, rounds)
      met = row.target.nil? || ratio <= row.target
      missed += 1 unless met
      if options[:json]
        results << as_json(row, a, b, ratio, low, high, met)
        next
      end
      puts format("%-28s %10.1f %-28s %10.1f %6.2f %5.2f..%-5.2f %s", row.name, a, row.reference, b, ratio, low,
                  high, row.target && "#{row.target} #{'MISSED' unless met}")
      $stdout.flush
    end
    GC.start # what segments are left over end while their daemon is there
  end
  puts JSON.pretty_generate(rows: results) if options[:json]
  exit(1) if options[:check] && missed.positive?
end

main
