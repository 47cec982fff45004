# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# The requests about streams, for the driver in Ruby.
module Streams
  def stream_create(request)
    views = request["views"].to_h { |view| [view["name"], description(view)] }
    options = request.slice("lossless", "slots", "history", "stages").transform_keys(&:to_sym)
    keep_stream(request, Shmview.create_stream(request["name"], views, **options))
  end

  def stream_open(request) = keep_stream(request, Shmview.open_stream(request["name"], request.fetch("access", "read")))

  def stream_close(request)
    stream(request).close
    streams.delete(request["stream"])
    nil
  end

  def stream_info(request) = stream(request).info.to_h.slice(:lossless, :slots, :history, :stages, :stage, :frame_bytes)

  def stream_join(request)
    stream(request).join
    nil
  end

  def stream_finish(request)
    stream(request).finish
    nil
  end

  def stream_status(request)
    status = stream(request).status
    { published: status.published, writer: status.writer_pid, deaths: status.deaths, slots: status.slots.map(&:state),
      readers: status.readers.map { |reader| [reader.pid, reader.stage, reader.next, reader.lag, reader.missed] } }
  end

  def stream_wait(request)
    among = request["streams"].map { |name| streams.fetch(name) }
    among.index(Shmview.wait_any(*among, timeout: seconds(request)))
  end

  def loan(request)
    frames[request["frame"]] = stream(request).loan(timeout: seconds(request))
    nil
  end

  def take(request)
    way = request["latest"] ? :latest : :take
    found = stream(request).public_send(way, timeout: seconds(request))
    frames[request["frame"]] = found
    { sequence: found.sequence, missed: found.missed, time_ns: found.time_ns, user: found.user.unpack1("H*") }
  rescue Shmview::StreamEnded
    "ended"
  rescue Shmview::WriterDied => e
    { pid: e.pid, command: e.command, when_ns: (e.when * 1e9).round }
  end

  def frame_set(request)
    set = frame(request)
    set.time_ns = request["time_ns"] if request["time_ns"]
    set.user = [request["user"]].pack("H*") if request["user"]
    set.stream.views.zip(request.fetch("lengths", [])) { |name, length| set.set_length(name, length) if length }
    nil
  end

  def frame_view(request)
    view = frame(request)[request["name"]]
    keep({ "view" => "#{request['frame']}.#{request['name']}" }, view)
  end

  def publish(request) = frame(request).publish.tap { forget(request) }
  def pass(request) = frame(request).pass_on(request["stage"])

  def discard(request)
    frame(request).discard
    forget(request)
  end

  def release(request)
    frame(request).release
    forget(request)
  end

  def streams = (@streams ||= {})

  private

  def frames = (@frames ||= {})
  def stream(request) = streams.fetch(request["stream"])
  def frame(request) = frames.fetch(request["frame"])

  def keep_stream(request, stream)
    streams[request["stream"]] = stream
    nil
  end

  # Forgets a frame that is over, and its views.
  def forget(request)
    frames.delete(request["frame"])
    @views.reject! { |name, _| name.start_with?("#{request['frame']}.") }
    nil
  end
end
