package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// File is a parsed file.
type File struct {
	name       string
	lines      []string
	env        Environment
	root       ast.Node
	anchors    map[string]ast.Node
	hidden     map[*token.Token]bool // scalars that a fault may not show
	tags       []*token.Token        // the parser leaves out some of them
	references []string              // the paths of the values in which a reference was read
	resolved   []resolved            // the values of the references
	files      []string              // the files that they named, or that are secrets themselves
	read       func(path string) (string, error)
	trusted    []string // files that decide whom the program trusts
	literal    bool     // the file itself contains a secret
	faults     []Fault
	expanded   int  // bytes that replaced references
	merged     int  // keys, merge keys and entries of lists that were read
	bounded    bool // a bound was exceeded
}

// Parse reads the text of the file called name, with references into env. If the file is not YAML, that is its only
// fault.
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
		f.faultAt(at.Position.Line, 1, "", fmt.Sprintf("more than %d brackets, dashes or margins are nested: remove some", maxNesting))
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

// lineEnds makes all line ends equal, so that everyone counts the same lines. The parser counts other line ends twice
// in some places, and then the search for hidden scalars would look in another line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// maxNesting bounds brackets within brackets, dashes after dashes, and lines that are indented ever further. The
// parser calls itself for each of them.
const maxNesting = 50

// maxEntries bounds the keys and the entries of lists in a file, because the parser's time grows with their square.
// It grows faster with documents and complex keys. Our files have none of these, so each counts as rareEntry.
const (
	maxEntries = 10_000
	rareEntry  = 100
)

// blankLines counts the blank lines. In a block of text, the parser's time grows with their square, too.
func blankLines(lines []string) (n int) {
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			n++
		}
	}
	return n
}

// tooMany returns the first token beyond maxEntries; nil if there is none.
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

// indented adds the margin of another line.
func indented(margins []int, column int) []int {
	for len(margins) > 0 && margins[len(margins)-1] >= column {
		margins = margins[:len(margins)-1]
	}
	return append(margins, column)
}

// tooDeep returns the first token beyond maxNesting; nil if there is none.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, dashes, line := 0, 0, 0
	var margins []int // of the lines that contain the current one
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

// cutComments removes comments from the lines that faults show, because a comment may contain a former secret.
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

// syntaxFault reports what the parser could not read. It is not known which parts of such a file are secret, so it
// shows only keys.
func (f *File) syntaxFault(err error) {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		f.faultAt(1, 1, "", "the file is not YAML: correct it")
		return
	}
	position := at.GetToken().Position
	fault := Fault{
		Line:    position.Line,
		Column:  position.Column,
		Message: "the file is not YAML from here on: " + quotation.ReplaceAllString(at.GetMessage(), hiding),
	}
	same := 0
	if fault.source, same = hideByShape(f.line(position.Line)); position.Column <= same {
		fault.caret = position.Column
	}
	f.faults = append(f.faults, fault)
}

// ReadFilesBy makes references to files use read instead of ReadSecret, for all values that are read from now on.
func (f *File) ReadFilesBy(read func(path string) (string, error)) { f.read = read }

// Root is the whole file as one value.
func (f *File) Root() Node { return Node{file: f, node: f.root} }

// maxFaults bounds how many faults are reported at once: each one searches the whole file.
const maxFaults = 100

// Err returns the faults found so far, the first 100 of them, in the order of the file; nil if there is none. It is
// an *Error.
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

// fault adds a fault of the value at a path; "" is the file.
func (f *File) fault(at *token.Token, path, message string) {
	before := len(f.faults)
	f.faultAt(at.Position.Line, at.Position.Column, path, message)
	quoted := strconv.Quote(at.Value)
	inPath := path == join("", at.Value) || strings.HasSuffix(path, "."+join("", at.Value))
	if len(f.faults) > before && quoted == `"`+at.Value+`"` && (inPath || strings.HasPrefix(message, "the key "+quoted)) {
		f.faults[before].key = at.Value
	}
}

// once is fault for a bound that was exceeded: everything read from then on would exceed it, too.
func (f *File) once(at *token.Token, path, message string) {
	if !f.bounded {
		f.fault(at, path, message)
	}
	f.bounded = true
}

// maxMessage bounds the message of a fault, in bytes: it may quote a text of the file, once for each alias.
const maxMessage = 1 << 10

func (f *File) faultAt(line, column int, path, message string) {
	if f.bounded {
		return // the fault of the bound is the last one
	}
	if path != "" {
		message = path + ": " + message
	}
	// Errors that other packages make with errors.Join have several lines.
	message = visible.Start(strings.ReplaceAll(message, "\n", "; "), maxMessage)
	f.faults = append(f.faults, Fault{Line: line, Column: column, Message: message, path: path})
}
