#!/usr/bin/ruby
# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# The conformance driver in Ruby: a program that uses <tt>require "shmview"</tt> only. It reads
# requests from standard input and writes the answers, one line of JSON each. peers.py describes the
# requests and how values are written.

require "fiddle"
require "json"
require "shmview"
require_relative "streams"

# Converts values to the form that JSON has, and back.
module Values
  INT64_MAX = 2**63 - 1

  module_function

  def told(value)
    case value
    when Integer then value > INT64_MAX ? { int: value.to_s } : value
    when Float then value.finite? ? value : { float: value.nan? ? "nan" : value.to_s[0, value.negative? ? 4 : 3].downcase }
    when Complex then { complex: [told(value.real), told(value.imaginary)] }
    when String then { hex: value.unpack1("H*") }
    when Array then value.map { |one| told(one) }
    else value
    end
  end

  # Returns the value that the JSON stands for; an Array is the parts of a struct.
  def meant(value)
    return value.map { |one| meant(one) } if value.is_a?(Array)
    return value unless value.is_a?(Hash)

    kind, text = value.first
    case kind
    when "int" then Integer(text)
    when "float" then { "nan" => Float::NAN, "inf" => Float::INFINITY, "-inf" => -Float::INFINITY }.fetch(text)
    when "complex" then Complex(*meant(text))
    when "hex" then [text].pack("H*")
    end
  end
end

# Has a method for each request.
class Driver
  include Values
  include Streams

  def initialize
    @segments = {}
    @views = {}
    @recoveries = {}
    Shmview.connect(start: false)
  end

  attr_reader :segments

  # --- Segments

  def hello(_request) = { language: "Ruby", pid: Process.pid, streams: true }

  def errors(_request)
    classes = Shmview.constants.map { |name| Shmview.const_get(name) }
    classes.select { |c| c.is_a?(Class) && c < Shmview::Error && c::CODE.positive? }
           .to_h { |c| [c::CODE, c.name.split("::").last] }
  end

  def create(request)
    @segments[request["seg"]] = Shmview.create(request["name"], request["size"], lock: request.fetch("lock", true))
    nil
  end

  def attach(request)
    @segments[request["seg"]] = Shmview.attach(request["name"], access: request.fetch("access", "write"))
    nil
  end

  def close(request)
    @views.reject! { |_, view| view.segment.equal?(segment(request)) }
    segment(request).close
    @segments.delete(request["seg"])
    nil
  end

  def remove(request) = Shmview.remove(request["name"])

  def put(request)
    bytes = [request["hex"]].pack("H*").bytes
    offset = request.fetch("offset", 0)
    segment(request).buf[offset...offset + bytes.size] = bytes
    nil
  end

  def dump(request) = segment(request).buf.to_a.pack("C*").unpack1("H*")

  def die(_request) = Process.kill(:KILL, Process.pid)

  def held(_request)
    Shmview.trim
    open = Dir.glob("/proc/self/fd/*").select { |fd| File.symlink?(fd) && File.readlink(fd).start_with?("socket:") }
    { sockets: open.size, mappings: File.foreach("/proc/self/maps").grep(%r{/shmview\.}).size }
  end

  # --- Views

  def define(request)
    views = request["views"].to_h { |view| [view["name"], description(view)] }
    segment(request).define({ request["layout"] => views })
    nil
  end

  def view(request)
    spec = description(request)
    keep(request, segment(request).cast(spec.delete(:format), spec.delete(:shape), **spec))
  end

  def open(request) = keep(request, segment(request).view(request["name"], layout: request["layout"]))

  def slice(request)
    step = request["step"]
    range = Range.new(request["start"] || (step&.negative? ? -1 : 0), request["stop"], true)
    range %= step if step
    keep(request, source(request)[*[..nil] * request["dimension"], range])
  end

  def row(request) = keep(request, source(request)[request["index"]])
  def transpose(request) = keep(request, source(request).transpose)
  def reshape(request) = keep(request, source(request).reshape(*request["shape"]))
  def broadcast(request) = keep(request, source(request).broadcast(*request["shape"]))
  def field(request) = keep(request, source(request).field(request["name"]))
  def recast(request) = keep(request, source(request).cast(request["format"]))

  def facts(request)
    v = of(request)
    { format: v.format, itemsize: v.itemsize, nbytes: v.nbytes, shape: v.shape, strides: v.strides,
      suboffsets: v.suboffsets || [], readonly: v.readonly?, offset: v.offset,
      c_contiguous: v.row_major?, f_contiguous: v.column_major?, stale: v.stale? }
  end

  # --- Elements

  def kind(request)
    v = of(request)
    there = Shmview::MemoryView.new(v)
    { value: v[*[0] * v.ndim].class.name, other: there.format }
  ensure
    there&.release
  end

  def get(request) = told(of(request)[*request["index"]])

  def set(request)
    of(request)[*request["index"]] = meant(request["value"])
    nil
  end

  def values(request) = told(of(request).to_a)

  def assign(request)
    assign_to(of(request), request["values"])
    nil
  end

  def other(request)
    there = consumer(of(request))
    there && told(elements(there, [], of(request).format.include?("Z")))
  ensure
    there&.release
  end

  def copy(request)
    to = of(request)
    to[*[..nil] * to.ndim] = @views.fetch(request["from"])
    nil
  end

  # --- The lock

  def lock(request)
    segment(request).lock(timeout: seconds(request), shared: request.fetch("shared", false))
    nil
  rescue Shmview::OwnerDied => e
    death(e)
  end

  def trylock(request)
    segment(request).try_lock(shared: request.fetch("shared", false))
  rescue Shmview::OwnerDied => e
    death(e)
  end

  # The block stays suspended until the request to unlock.
  def recover(request)
    recovery = @recoveries[request["seg"]] = Fiber.new { segment(request).recover { |died| Fiber.yield died } }
    died = recovery.resume
    died && death(died)
  end

  def unlock(request)
    recovery = @recoveries.delete(request["seg"])
    repaired = request.fetch("repaired", true)
    if recovery.nil?
      segment(request).unlock(repaired: repaired)
    elsif repaired
      recovery.resume
    else
      begin
        recovery.raise(Interrupt)
      rescue Interrupt
        nil # the exception that ended the block
      end
    end
    nil
  end

  def status(request)
    status = segment(request).lock_status
    { held: status.held, owner_is_dead: status.owner_is_dead, dirty: status.dirty,
      parties: status.parties.map { |party| [party.role, party.pid] } }
  end

  # --- Phases and changes

  def switch(request)
    segment(request).switch(request["layout"])
    nil
  end

  def phase(request) = { generation: segment(request).generation, phase: segment(request).phase }
  def wait_phase(request) = wait(request, phase: request["layout"], generation: request["after"])
  def change(request) = segment(request).change

  def notify(request)
    segment(request).notify
    nil
  end

  def wait_change(request) = wait(request, change: request["seen"])

  private

  def segment(request) = @segments.fetch(request["seg"])
  def of(request) = @views.fetch(request["view"])
  def source(request) = @views.fetch(request["of"])

  def keep(request, view)
    @views[request["view"]] = view
    nil
  end

  def description(request)
    request.slice("format", "shape", "offset", "strides", "suboffsets", "readonly").transform_keys(&:to_sym)
  end

  def seconds(request) = request["timeout_ms"]&.fdiv(1000)
  def wait(request, **what) = segment(request).wait(timeout: seconds(request), **what)

  def death(died)
    { name: died.name, pid: died.pid, command: died.command, phase: died.phase,
      generation: died.generation, when_ns: (died.when * 1e9).round }
  end

  # Assigns by indices; a view of one dimension as a whole.
  def assign_to(view, values)
    case view.ndim
    when 0 then view[] = meant(values)
    when 1 then view[0..] = meant(values)
    else values.each_with_index { |row, i| assign_to(view[i], row) }
    end
  end

  NUMBERS = %w[b B h H i I q Q f d P].freeze
  PAIRS = %w[Zf Zd].freeze

  # Returns Fiddle's view of the same bytes; nil if MemoryView lacks the type.
  def consumer(view)
    type = view.format.delete("<>")
    return unless NUMBERS.include?(type) || PAIRS.include?(type)

    Fiddle::MemoryView.new(view)
  end

  def elements(there, index, pairs)
    return pairs ? Complex(*there[*index]) : there[*index] if index.size == there.ndim

    Array.new(there.shape[index.size]) { |i| elements(there, [*index, i], pairs) }
  end
end

driver = Driver.new
$stdout.sync = true
$stdin.each_line do |line|
  request = JSON.parse(line)
  reply =
    begin
      { ok: driver.public_send(request["do"], request) }
    rescue Shmview::Error => e
      raise if e.code.zero?

      { error: e.code, class: e.class.name.split("::").last, text: e.message }
    end
  puts JSON.generate(reply)
end
abort "left attached: #{driver.segments} #{driver.streams}" unless driver.segments.empty? && driver.streams.empty?
