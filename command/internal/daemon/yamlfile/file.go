package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// File is a parsed file.
type File struct {
	name       string
	lines      []string
	env        Environment
	root       ast.Node
	anchors    map[string]ast.Node
	hidden     map[*token.Token]bool // scalars that no fault may show
	tags       []*token.Token        // some of which the parser leaves out
	references []string              // the paths of the values in which one was read
	resolved   []resolved            // what they stood for
	files      []string              // that they named, or that are secrets themselves
	read       func(path string) (string, error)
	trusted    []string // files that say who is trusted
	literal    bool     // a secret stands in the file itself
	faults     []Fault
	expanded   int  // bytes that references stood for
	merged     int  // keys and merge keys that were read
	bounded    bool // a bound was passed
}

// Parse reads the text of the file called name, with references into env. A
// file that is no YAML has that fault only.
func Parse(name string, text []byte, env Environment) *File {
	source := lineEnds.Replace(strings.TrimPrefix(string(text), "\ufeff"))
	if !strings.HasSuffix(source, "\n") {
		source += "\n" // without it the lexer leaves out a tag that ends the file
	}
	f := &File{name: name, lines: strings.Split(source, "\n"), env: env, read: ReadSecret, anchors: map[string]ast.Node{}}
	if at := strings.IndexFunc(source, isMark); at >= 0 {
		line := strings.Count(source[:at], "\n") + 1
		f.faultAt(line, 1, "", "the line has a private-use character of Unicode: remove it")
		return f
	}
	if blank := blankLines(f.lines); blank > maxEntries {
		f.faultAt(1, 1, "", fmt.Sprintf("the file has %d blank lines, and may have %d: remove some", blank, maxEntries))
		return f
	}
	tokens := lexer.Tokenize(markReferences(source))
	f.cutComments(tokens)
	f.tags = slices.DeleteFunc(slices.Clone(tokens), func(at *token.Token) bool { return at.Type != token.TagType })
	if at := tooDeep(tokens); at != nil {
		f.faultAt(at.Position.Line, 1, "", fmt.Sprintf("more than %d brackets, dashes or margins stand in each other: remove some", maxNesting))
		return f
	}
	if at := tooMany(tokens); at != nil {
		f.faultAt(at.Position.Line, 1, "", fmt.Sprintf("the file has more than %d keys or entries of lists: split it", maxEntries))
		return f
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.syntaxFault(err)
		return f
	}
	f.setRoot(parsed)
	return f
}

// lineEnds makes each line end one that all count alike: the parser takes others for two in
// places, and what is hidden would be looked for in another line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// maxNesting bounds brackets within brackets, dashes after dashes, and lines that are
// moved ever more to the right: the parser
// calls itself for each.
const maxNesting = 50

// maxEntries bounds the keys and the entries of lists in a file: the parser's time grows
// with their square. With documents and complex keys it grows faster, and no file of ours
// has any: each counts as rareEntry.
const (
	maxEntries = 10_000
	rareEntry  = 100
)

// blankLines counts the lines without a word: in a block of text, the parser's time grows
// with their square, too.
func blankLines(lines []string) (n int) {
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			n++
		}
	}
	return n
}

// tooMany is the first token beyond it; nil if there is none.
func tooMany(tokens token.Tokens) *token.Token {
	entries := 0
	for _, at := range tokens {
		switch at.Type {
		case token.MappingValueType, token.SequenceEntryType, token.CollectEntryType:
			entries++
		case token.MappingKeyType, token.DocumentHeaderType, token.DocumentEndType:
			entries += rareEntry
		}
		if entries > maxEntries {
			return at
		}
	}
	return nil
}

// indented add the margin of another line.
func indented(margins []int, column int) []int {
	for len(margins) > 0 && margins[len(margins)-1] >= column {
		margins = margins[:len(margins)-1]
	}
	return append(margins, column)
}

// tooDeep is the first token beyond it; nil if there is none.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, dashes, line := 0, 0, 0
	var margins []int // of the lines that the current one stands in
	for _, at := range tokens {
		if at.Position.Line != line {
			dashes, line = 0, at.Position.Line
			margins = indented(margins, at.Position.Column)
		}
		switch at.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType:
			dashes++
		}
		if max(brackets, dashes, len(margins)) > maxNesting {
			return at
		}
	}
	return nil
}

// cutComments takes comments out of the lines that faults show: a secret that
// was once in use may stand there.
func (f *File) cutComments(tokens token.Tokens) {
	for _, at := range tokens {
		if at.Type != token.CommentType || at.Position.Line > len(f.lines) {
			continue
		}
		line := []rune(f.lines[at.Position.Line-1])
		f.lines[at.Position.Line-1] = strings.TrimRight(string(line[:min(len(line), at.Position.Column-1)]), " \t")
	}
}

func (f *File) setRoot(parsed *ast.File) {
	var docs []ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			docs = append(docs, doc.Body)
		}
	}
	switch len(docs) {
	case 0:
		f.faultAt(1, 1, "", "the file is empty: write processes into it")
		return
	case 1:
	default:
		at := docs[1].GetToken().Position
		f.faults = append(f.faults, Fault{Line: at.Line, Column: at.Column, Message: "a second document begins here: keep one", source: hiding})
	}
	f.root = docs[0]
	for _, node := range ast.Filter(ast.AnchorType, f.root) {
		anchor := node.(*ast.AnchorNode)
		f.anchors[anchor.Name.GetToken().Value] = anchor.Value
	}
	f.hideAll()
}

// syntaxFault reports what the parser could not read. What is secret in such a
// file is not known, so no more than its keys are shown.
func (f *File) syntaxFault(err error) {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		f.faultAt(1, 1, "", "the file is no YAML: correct it")
		return
	}
	position := at.GetToken().Position
	fault := Fault{
		Line:    position.Line,
		Column:  position.Column,
		Message: "the file is no YAML from here on: " + quotation.ReplaceAllString(at.GetMessage(), hiding),
	}
	same := 0
	if fault.source, same = hideByShape(f.line(position.Line)); position.Column <= same {
		fault.caret = position.Column
	}
	f.faults = append(f.faults, fault)
}

// ReadFilesBy has the references of values that are read from now on look into files by read,
// instead of ReadSecret.
func (f *File) ReadFilesBy(read func(path string) (string, error)) { f.read = read }

// Root is the whole file as one value.
func (f *File) Root() Node { return Node{file: f, node: f.root} }

// maxFaults bounds what a file is blamed for at once: each takes a look at all of it.
const maxFaults = 100

// Err returns the faults found so far, the first 100 of them, in the order of the
// file; nil if there is none. It is an *Error.
func (f *File) Err() error {
	if len(f.faults) == 0 {
		return nil
	}
	e := &Error{Name: f.name, Faults: slices.Clone(f.faults[:min(len(f.faults), maxFaults)])}
	for i := range e.Faults {
		f.showSource(&e.Faults[i])
	}
	slices.SortStableFunc(e.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

func (f *File) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return strings.TrimRight(f.lines[n-1], "\r")
}

// fault adds what is wrong with the value at a path; "" is the file.
func (f *File) fault(at *token.Token, path, message string) {
	f.faultAt(at.Position.Line, at.Position.Column, path, message)
}

// once is fault for a bound that was passed: what is read from then on would pass
// it, too.
func (f *File) once(at *token.Token, path, message string) {
	if !f.bounded {
		f.fault(at, path, message)
	}
	f.bounded = true
}

func (f *File) faultAt(line, column int, path, message string) {
	if path != "" {
		message = path + ": " + message
	}
	// What other packages say with errors.Join has several lines.
	message = strings.ReplaceAll(message, "\n", "; ")
	f.faults = append(f.faults, Fault{Line: line, Column: column, Message: message, path: path})
}
