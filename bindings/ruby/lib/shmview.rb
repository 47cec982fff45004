# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# Named shared-memory segments with a lock that survives its holder, and typed views.
#
#   require "shmview"
#
#   seg = Shmview.create("demo", layouts: {float: {A: ["f4", 1000]}, int: {D: ["i2", 2000]}})
#   seg.synchronize do                      # holds the lock
#     seg.switch("float")                   # says which layout holds from now on
#     seg["A"][0..2] = [1, 2, 3]
#   end
#
#   # in another process
#   seg = Shmview.attach("demo")
#   seg.wait(phase: "float")
#   seg.shared { p seg["A"][0..2].to_a }
#
# No daemon needs to run: where there is none, one is started for this user.
module Shmview
end

require_relative "shmview/errors"
require "shmview/core"
require_relative "shmview/layouts"
require_relative "shmview/segment"
require_relative "shmview/open"
