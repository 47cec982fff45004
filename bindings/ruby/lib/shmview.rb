# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# Named shared-memory segments with a lock that survives its holder, and typed views.
#
#   require "shmview"
#
#   seg = Shmview.create("demo", layouts: {float: {A: ["f4", 1000]}, int: {D: ["i2", 2000]}})
#   seg.synchronize do                      # holds the lock
#     seg.switch("float")                   # makes this layout current
#     seg["A"][0..2] = [1, 2, 3]
#   end
#
#   # in another process
#   seg = Shmview.attach("demo")
#   seg.wait(phase: "float")
#   seg.shared { p seg["A"][0..2].to_a }
#
# No daemon needs to run: if there is none, one is started for this user.
#
# Methods in C are documented in ext/shmview. The Ruby files have the parts where Ruby is shorter than
# C and speed does not matter: keyword arguments with defaults, layouts, the classes of results and
# errors.
module Shmview
end

# errors.rb comes before the extension, which raises its classes; the others extend the extension's.
require_relative "shmview/errors"
require "shmview/core"
require_relative "shmview/layouts"
require_relative "shmview/segment"
require_relative "shmview/access"
require_relative "shmview/open"
require_relative "shmview/arrays"
require_relative "shmview/stats"
require_relative "shmview/events"
require_relative "shmview/streams"
