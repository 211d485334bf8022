package yamlfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const hiding = "***"

// hideAll hides every scalar of the file, until it is read as something that is
// no secret: of what is not read it is not known whether it is one. What consists
// of references alone, and the names of anchors, may be shown.
func (f *File) hideAll() {
	f.hidden = map[*token.Token]bool{}
	if f.root != nil {
		ast.Walk(hider{f}, f.root)
	}
}

// reveal lets faults show a scalar.
func (f *File) reveal(node ast.Node) { delete(f.hidden, node.GetToken()) }

type hider struct{ file *File }

// Visit is called by ast.Walk.
func (h hider) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.MappingValueNode:
		ast.Walk(h, n.Value) // not the key
		return nil
	case *ast.AnchorNode:
		ast.Walk(h, n.Value)
		return nil
	case *ast.AliasNode, *ast.NullNode:
		return nil
	case *ast.MappingNode, *ast.SequenceNode, *ast.TagNode:
		return h
	}
	if at := node.GetToken(); !onlyReferences(at.Value) {
		h.file.hidden[at] = true
	}
	return nil
}

// showSource gives a fault its line, with what is secret replaced.
func (f *File) showSource(fault *Fault) {
	if fault.source != "" {
		return
	}
	line := []rune(f.line(fault.Line))
	fault.caret = fault.Column
	for _, at := range slices.Backward(f.hiddenOn(fault.Line)) {
		from := min(at.Position.Column-1, len(line))
		to := min(from+spelled(at), len(line))
		line = slices.Replace(line, from, to, []rune(hiding)...)
		if fault.caret > to {
			fault.caret += len(hiding) - (to - from)
		}
	}
	fault.source = string(line)
}

// hiddenOn returns the hidden scalars of a line from left to right.
func (f *File) hiddenOn(line int) []*token.Token {
	var on []*token.Token
	for at := range f.hidden {
		if at.Position.Line == line {
			on = append(on, at)
		}
	}
	slices.SortFunc(on, func(a, b *token.Token) int { return a.Position.Column - b.Position.Column })
	return on
}

// spelled is how many characters of its first line a scalar takes, with quotes.
func spelled(at *token.Token) int {
	first, _, _ := strings.Cut(strings.TrimSpace(at.Origin), "\n")
	return len([]rune(strings.TrimRight(first, "\r")))
}

var (
	secretKey = regexp.MustCompile(`(?i)^(.*?\b[\w-]*(?:secret|database|url|password|token|authorization|api-?key)["']?\s*:).*$`)
	anyKey    = regexp.MustCompile(`:(\s|$)`)
)

// hideByName hides what may be secret in a line of a file that cannot be parsed:
// what follows a telling key, and a line without a key, which may belong to a
// secret of several lines.
func hideByName(line string) string {
	if !anyKey.MatchString(line) {
		return hiding
	}
	return secretKey.ReplaceAllString(line, "$1 "+hiding)
}
