# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# ruby_pages.rb RI OUT: writes a page of Markdown for each class of the store RI, which rdoc --ri has
# written, and one for all errors.

require "rdoc"
require "rdoc/store"

def text_of(object)
  comment = object.comment
  document = comment.respond_to?(:accept) ? comment : comment.parse
  # rdoc writes headings as Markdown too, which would be headings of the page; view[i] is no link
  text = document.accept(RDoc::Markup::ToMarkdown.new).gsub(/^#+ (.*)$/, '**\1**').strip
  text.gsub(/^ {4}.*$|`[^`]*`|\[/) { |found| found == "[" ? "\\[" : found }
end

def signatures(method)
  calls = method.call_seq.to_s.strip
  calls.empty? ? "#{method.name}#{method.params.to_s.sub(/\A(?!\()(?=.)/, ' ')}" : calls
end

def members(entry)
  methods = entry.method_list.select { |m| m.visibility == :public && !text_of(m).empty? }
  attributes = entry.attributes.reject { |a| text_of(a).empty? }
  lines = attributes.sort_by(&:name).map { |a| "### #{a.name}\n\n#{text_of(a)}\n" }
  lines + methods.sort_by { |m| [m.singleton ? 0 : 1, m.name] }.map do |m|
    "### #{m.singleton ? "#{entry.name}." : ''}#{m.name}\n\n```ruby\n#{signatures(m)}\n```\n\n#{text_of(m)}\n"
  end
end

# The name of the superclass; nil for a module.
def parent_of(entry)
  return if entry.module?

  parent = entry.superclass
  parent.respond_to?(:full_name) ? parent.full_name : parent
end

def page(entry)
  parent = parent_of(entry)
  included = entry.includes.map(&:name)
  lines = ["# #{entry.full_name}\n"]
  lines << "Superclass: `#{parent}`.\n" if parent && parent != "Object"
  lines << "Includes: #{included.map { |name| "`#{name}`" }.join(', ')}.\n" unless included.empty?
  lines << text_of(entry) << "" << members(entry)
  lines.join("\n")
end

store = RDoc::Store.new(ARGV[0], :home)
store.load_all
entries = store.all_classes_and_modules.sort_by(&:full_name)
entries.reject! { |e| e.full_name == "Shmview::Core" || e.full_name !~ /\AShmview/ }
# A class is an error if it descends from Shmview::Error.
is_error = lambda do |name|
  entry = entries.find { |each| each.full_name == name || each.full_name == "Shmview::#{name}" }
  entry && (entry.full_name == "Shmview::Error" || is_error.call(parent_of(entry)))
end
errors, classes = entries.partition { |entry| is_error.call(entry.full_name) }

names = classes.map do |entry|
  name = entry.full_name.gsub("::", "-")
  File.write(File.join(ARGV[1], "#{name}.md"), page(entry))
  name
end
texts = errors.map do |entry|
  "## #{entry.full_name}\n\nSuperclass: `#{parent_of(entry)}`.\n\n#{text_of(entry)}\n\n#{members(entry).join("\n")}"
end
File.write(File.join(ARGV[1], "errors.md"), "# Errors\n\n#{texts.join("\n")}")
File.write(File.join(ARGV[1], "index.md"), <<~PAGE)
  # The Ruby gem

  This reference is made from the comments of the gem. [RUBY.md](../docs/RUBY.md) explains how the calls belong together.

  ```{toctree}
  :maxdepth: 1

  ../docs/RUBY
  #{(names + ['errors']).join("\n")}
  ```
PAGE
