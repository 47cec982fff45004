# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # Converts layouts from the short forms that programs write to the full arguments of libshmview. A
  # layout is a Hash of views; a view has one of these forms:
  #
  #   "f4"                             one element
  #   ["f4", 1000]  ["f4", [10, 10]]   an array
  #   ["f4", 1000, 64]                 that begins at byte 64
  #   {format: "f4", shape: [10, 10], strides: [4, 40], offset: 0, suboffsets: nil, readonly: true}
  #
  # A view without an offset follows the view before it, aligned to its element; the first one begins
  # at byte 0. So the layouts of a segment overlap, like the members of a union in C.
  module Layouts # :nodoc:
    KEYS = %i[format shape offset strides suboffsets readonly].freeze

    class << self
      # Returns a Hash of resolved layouts, and the size that a segment needs for all of them. Names
      # are frozen copies, because the extension reads them without the GVL.
      def resolve(layouts)
        ends = [0]
        resolved = layouts.to_h do |name, views|
          list, last = resolve_one(views)
          ends << last
          [name.to_s.dup.freeze, list]
        end
        [resolved, ends.max]
      end

      # Returns a frozen Hash: the name of a view => the layouts that have it. Segment#view uses it
      # before the first phase. known is such a Hash of layouts declared earlier, or nil.
      def names(resolved, known = nil)
        all = (known || {}).transform_values(&:dup)
        resolved.each do |layout, views|
          views.each { |view| (all[view[0]] ||= []) << layout }
        end
        Ractor.make_shareable(all)
      end

      private

      # Returns the views of one layout as arguments of _define, and the byte after the last of them.
      def resolve_one(views)
        at = last = 0
        list = views.map do |name, view|
          parts = parts_of(name, view)
          format = parts[:format]
          _, itemsize, align = Core.format(format)
          shape = Array(parts[:shape])
          offset = parts[:offset] || (at + align - 1) / align * align
          at = offset + reach(shape, parts[:strides], itemsize)
          last = [last, at].max
          [name.to_s.dup.freeze, format, offset, shape, parts[:strides], parts[:suboffsets],
           parts[:readonly]]
        end
        [list, last]
      end

      def parts_of(name, view)
        case view
        when Hash
          unknown = view.keys - KEYS
          return view if unknown.empty? && view[:format]

          raise ArgumentError, "view '#{name}': the keys are #{KEYS.join(', ')}, format must be " \
                               "there; unknown: #{unknown.empty? ? 'none' : unknown.join(', ')}"
        when Array
          return %i[format shape offset].zip(view).to_h if view.size.between?(1, 3)

          raise ArgumentError, "view '#{name}': [format, shape, offset], not #{view.inspect}"
        else
          { format: view }
        end
      end

      # Returns the bytes from element [0, ..., 0] to the end of the last one. Negative strides lead
      # to earlier bytes and do not count.
      def reach(shape, strides, itemsize)
        return 0 if shape.include?(0)
        return shape.inject(itemsize, :*) unless strides

        itemsize + shape.zip(strides).sum { |n, step| [0, (n - 1) * step.to_i].max }
      end
    end
  end
  private_constant :Layouts
end
