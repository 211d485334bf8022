// Command reference writes the descriptions of settings in the documents, and a JSON Schema for editors, from the
// structs that declare the settings: make reference.
//
//	struct: tags and comments ──▶ settings ──┬─▶ lists in docs/configuration.md and docs/sinks/*.md
//	                                         └─▶ docs/dispatcher.schema.json
//	the program's --help ──▶ docs/commands.md
//
// It reads the source and imports none of the packages. Comments are only in the source, and so sinks may be in
// modules of their own. See package knob for the tags. For the commands, it builds the program and asks it.
//
// The text of a setting is the comment of its field without the name of the field. A paragraph of the comment that
// begins with "In the file:" replaces all of it. It may have links, with paths from the root of the repository.
package main
