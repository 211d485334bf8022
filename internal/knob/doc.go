// Package knob reads the settings of a Config struct from the tags of its fields. So each setting is declared in one
// place: its name, default and bounds. Its meaning is the doc comment of the field.
//
//	type Config struct {
//		// Window is how many records may be on their way at a time.
//		Window int `knob:"window" default:"1" min:"1" max:"10000"`
//	}
//
//	field and tags ──┬─▶ Fill, Check      the package that owns the Config, for users of the library
//	                 ├─▶ yamlfile.Decode  the daemon, with line and column
//	                 └─▶ FromField        make reference: the reference in docs/ and the JSON Schema
//
// Tags:
//
//	knob:"window"         the key in a configuration file; a field without this tag cannot be set there
//	knob:"-grace"         the same of a setting that only users of the library have: no file sets it
//	default:"30s"         what the zero value means
//	min:"1ms" max:"1h"    bounds of a number or a duration, both included; max:"batch" is the setting batch, declared before it
//	oneof:"none gzip"     the words that a text may be
//	need:"topic: orders"  the key must be there; the text is an example
//	like:"limit: 50/s"    an example of a key that may be left out
//	pattern:"^[0-9]+/s$"  what a text looks like that its own type reads (encoding.TextUnmarshaler); for editors only
//	secret:"true"         no error shows the text
//	file:"secret"         the text is the path of a file that is a secret; "trusted": of a file that decides whom to trust
//	split:"true"          a list that may also be written as one text, with commas or spaces between
//	one:"true"            a list of one text may also be written as that text
//	true:"at_least 1"     the word for true, instead of "true" and "false"; false:"any" is that for false
//	percent:"true"        a number that is written with %
//	zero:"-1"             the value of the field for a 0 in the file, if the zero value means a default that is not 0
//	references:"a,b"      not a setting: the texts that replaced the references in the settings a and b
//
// Invariants: a wrong tag is a fault of the program, so it panics, and a test of each Config that uses Of finds it.
//
// Left out: rules between several settings, beyond bounds. The package that owns the Config checks those.
package knob
