# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# array, zeros, ones, empty, full and attach_array: a segment with one array, in one call.
module Shmview
  # Deduces shapes and formats of values.
  module Arrays # :nodoc:
    # The name of the view and of its layout, by which a program in any language opens it.
    NAME = "array"

    class << self
      # Returns what an assignment copies from: a View of the memory that +values+ exports, or values
      # as a number or an Array.
      def source(values)
        Core.foreign(values) || (values.is_a?(Enumerable) && !values.is_a?(Struct) ? values.to_a : values)
      end

      # Returns the shape of a View, an Array or one value. An element of a struct is an Array too.
      def shape(source, is_struct)
        return source.shape if source.is_a?(View)
        return [] if !source.is_a?(Array) || (is_struct && !source[0].is_a?(Array) && !source.empty?)

        shapes = source.map { |row| shape(row, is_struct) }.uniq
        return [source.size, *shapes[0]] if shapes.size < 2

        raise ArgumentError, "the rows have different shapes: #{shapes[0]} and #{shapes[1]}"
      end

      # Returns the format for a View, an Array or one value.
      def format(source)
        return source.format if source.is_a?(View)

        values = [source].flatten
        kinds = values.map { |value| kind(value) }.uniq
        case kinds.sort
        when [] then "d"
        when ["?"] then "?"
        when ["q"] then values.max >= 1 << 63 ? "Q" : "q"
        when ["d"], %w[d q] then "d"
        when ["Zd"], %w[Zd d], %w[Zd q], %w[Zd d q] then "Zd"
        else raise TypeError, "no format holds both true or false and numbers"
        end
      end

      # Returns the strides of an array whose first index varies fastest.
      def column_major(shape, itemsize)
        shape.map { |n| itemsize.tap { itemsize *= n } }
      end

      private

      def kind(value)
        case value
        when Integer then "q"
        when Float, Rational then "d"
        when Complex then "Zd"
        when true, false then "?"
        else raise TypeError, "no format follows from a #{value.class}; name one, such as \"5s\" or \"T{i:a:d:b:}\""
        end
      end
    end
  end
  private_constant :Arrays

  class << self
    # Creates a segment with an array of zeros, and returns a View of it. view.segment is the segment,
    # which has the lock. Another process calls attach_array(view.segment.name). With a block, yields
    # the view, closes the segment at the end, and returns what the block returns.
    #
    # shape:: the number of elements in each dimension: an Integer, or an Array of at most 8
    # format:: as for Segment#cast
    # order:: "C": the last index varies fastest; "F": the first one
    # name:: of the segment; nil: a random one
    # options:: +lifetime+, +lock+, +populate+, +mode+, +owner+, +group+, +entries+ and +connection+ of
    #           create
    #
    # Blocks like create. Raises the errors of create and of Segment#cast.
    def zeros(shape, format = "d", order: "C", name: nil, **options, &block)
      new_array(shape, format, order, name, options, &block)
    end

    # Like zeros: new memory is always zero.
    alias empty zeros

    # Like zeros, but each element is 1.
    def ones(shape, format = "d", order: "C", name: nil, **options, &block)
      new_array(shape, format, order, name, options, 1, &block)
    end

    # Like zeros, but each element is +value+; or the elements are those of value: of an Array of this
    # shape, or of a View or another object that exports a MemoryView, whose elements are repeated by
    # numpy's rule. +format+: nil stands for the one of value, as for array. Raises ConversionError if
    # the format cannot represent the value.
    def full(shape, value, format = nil, order: "C", name: nil, **options, &block)
      value = Arrays.source(value)
      new_array(shape, format || Arrays.format(value), order, name, options, value, &block)
    end

    # Like zeros, but with the shape and a copy of the elements of +values+: of a View or another object
    # that exports a MemoryView, an Array (of Arrays), another Enumerable, or one number. +format+: nil
    # stands for the one of values: of Integers "q", of Floats "d", of Complex numbers "Zd", of true and
    # false "?".
    #
    #   Shmview.array([[1, 2], [3, 4.5]])       # format "d", shape [2, 2]
    #
    # Raises TypeError if no format follows from the values, ArgumentError if rows differ in length.
    def array(values, format = nil, order: "C", name: nil, **options, &block)
      values = Arrays.source(values)
      format ||= Arrays.format(values)
      shape = Arrays.shape(values, Core.format(format)[4])
      new_array(shape, format, order, name, options, values, &block)
    end

    # Attaches a segment that has one view, as array, zeros and similar methods make, and returns that
    # View. With a block, yields it and closes the segment like zeros.
    #
    # options:: +readonly+, +access+, +timeout+, +populate+ and +connection+ of attach
    #
    # Raises NoLayout if the segment has no view or several: then use attach and Segment#view. Raises
    # the errors of attach.
    def attach_array(name, **options, &block)
      segment = attach(name, **options)
      view = open_or_discard(segment, {}) { open_only_view(segment) }
      lend_view(view, &block)
    end

    private

    # Creates the segment and its view, and sets its elements to +values+, if they are given.
    def new_array(shape, format, order, name, options, *values, &block)
      raise ArgumentError, "order is \"C\" or \"F\", not #{order.inspect}" unless %w[C F].include?(order.to_s)

      shape = Array(shape)
      strides = Arrays.column_major(shape, Core.format(format)[1]) if order.to_s == "F" && !shape.include?(0)
      size = 1 if shape.include?(0) # a segment has at least one byte
      layout = { Arrays::NAME => { format: format, shape: shape, strides: strides } }
      segment = create(name, size, **options, layouts: { Arrays::NAME => layout })
      view = open_or_discard(segment, options) do
        made = segment.view(Arrays::NAME, layout: Arrays::NAME)
        values.each { |value| made[] = value } if made.nbytes.positive?
        made
      end
      lend_view(view, &block)
    end

    # Returns the only View of a segment. Raises NoLayout if it has none or several.
    def open_only_view(segment)
      views = segment.layouts.flat_map { |layout, its_views| its_views.keys.map { |view| [view, layout] } }
      return segment.view(views[0][0], layout: views[0][1]) if views.size == 1

      list = views.empty? ? "none" : views.map { |view, layout| "'#{view}' of '#{layout}'" }.join(", ")
      raise Errors.make(NoLayout::CODE, "the segment '#{segment.name}' has #{views.size} views (#{list}): use attach " \
                                        "and Segment#view", { name: segment.name })
    end

    # Returns the view; or yields it, closes its segment, and returns the value of the block.
    def lend_view(view)
      return view unless block_given?

      lend(view.segment) { yield view }
    end
  end
end
