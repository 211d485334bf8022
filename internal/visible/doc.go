// Package visible is the one layer through which texts that others wrote reach a terminal, a log or a shell: ids,
// keys, errors, names of processes and people.
//
// A character is hidden if it has an effect other than to be seen: control characters, marks that change the
// direction of reading, and Unicode's own ends of lines. Text, Line and JSON let none of them through. Shell and
// Quoted make one word of a command from a text.
//
//	Text   for people, in several lines   \u202e; line breaks and tabs stay
//	Inline for people, in one line        the same, and line breaks too
//	Line   a cell, or a part of a line    a space for each; runs of spaces become one
//	JSON   encoded already                \u202e, which is the same to every parser
//	SQL    a command with quoted names    U&"\+00202E"
//	Shell  a word of a proposed command   quoted where a shell would read more into it
package visible
