#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# A camera and three readers, each a process of its own, which share images without a copy. The filter
# looks at each image and passes the bright ones on to the next stage. The printer prints those. The
# third reader is killed while it holds an image; the camera learns of it by nothing but its absence.

require "shmview"

N_IMAGES = 12

# Passes the bright images on, and ends the next stage after the last one.
def filter(name)
  Shmview.open_stream(name, :write) do |images|
    images.each { |frame| frame.pass_on(1) if frame["image"].summary.max > 150 }
  end
  Shmview.open_stream("#{name}:1", :write, &:finish)
end

def print_bright(name)
  Shmview.open_stream("#{name}:1") do |images|
    images.each do |frame|
      pixels = frame["image"].summary
      puts "#{frame.user}: #{frame['image'].shape.join(' x ')} pixels, from #{pixels.min.to_i} to #{pixels.max.to_i}"
    end
  end
end

def hold_one(name)
  images = Shmview.open_stream(name)
  images.take
  Process.kill(:KILL, Process.pid)
end

# The number of rows differs from image to image.
def capture(frame, number)
  frame.set_length("image", 40 + number)
  image = frame["image"]
  image.fill(20 * number)
  image[0, 0] = 0
  frame.user = "image #{number}"
end

camera = Shmview.create_stream(nil, image: ["uint8", [120, 160]], slots: 4, stages: 2, lossless: true)
readers = %i[filter print_bright hold_one].map do |work|
  fork do
    send(work, camera.name)
    $stdout.flush
    exit!(0) # the parent's objects are none of the child's concern
  end
end
sleep 0.001 until camera.status.readers.size == readers.size
N_IMAGES.times { |number| camera.loan(timeout: 60) { |frame| capture(frame, number) } }
camera.finish

ends = readers.map { |pid| Process.wait2(pid)[1] }
puts "filter: #{ends[0].success?}, printer: #{ends[1].success?}, third reader: killed by #{Signal.signame(ends[2].termsig)}"
slots = camera.status.slots
puts "#{camera.status.published.join(' and ')} images in the stages; #{slots.count { |slot| slot.state == :held }} of #{slots.size} slots held"
camera.close
