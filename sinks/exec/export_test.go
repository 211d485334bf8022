package exec

import "github.com/ordered-dispatcher/ordered-dispatcher/processor"

// Words are what a child wrote. Nothing is logged before Flush.
type Words struct{ words *words }

func NewWords(c Config) Words              { return Words{newWords(c.withDefaults(), "p")} }
func (w Words) Given(d processor.Delivery) { w.words.given(d) }
func (w Words) Note(line string)           { w.words.note(line) }
func (w Words) Flush() (more bool)         { return w.words.flush() }
func (w Words) Tail() string               { return w.words.tail() }

// Unread is how many lines the child wrote that no one has read.
func Unread(s *Sink) int { return len(s.child.answers) }
