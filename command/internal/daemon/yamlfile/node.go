package yamlfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Node is a value in a file. If the value does not have the type as which it is read, that is a fault, and it reads
// as zero.
type Node struct {
	file *File
	node ast.Node
	key  *token.Token // nil for the root
	path string       // the keys that lead here, with dots between them
	// example shows how to write it with its key; "" if that is clear.
	example string
}

// Fault reports a mistake in the value, at its key.
func (n Node) Fault(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if n.key == nil {
		n.file.faultAt(1, 1, n.path, message)
		return
	}
	n.file.fault(n.key, n.path, message)
}

// Refuse reports the objection of another package to the value. That may quote the value, or a part of it, so its
// text is not shown if the value has a reference.
func (n Node) Refuse(err error) {
	if n.refers() {
		n.Fault("it is refused with the values of its references, which are not shown here: write the values in place of the references to see why")
		return
	}
	n.Fault("%v", err)
}

// refers reports whether a reference was read in the value or in one below it.
func (n Node) refers() bool { return slices.ContainsFunc(n.file.references, n.holds) }

// References returns the texts that replaced the references in the value or in one below it: likely secrets.
func (n Node) References() []string {
	var texts []string
	for _, r := range n.file.resolved {
		if n.holds(r.path) && r.text != "" {
			texts = append(texts, r.text)
		}
	}
	return texts
}

// FileTexts returns the files that references named in the value or in one below it, with their content; nil if there
// is none.
func (n Node) FileTexts() map[string]string {
	var texts map[string]string
	for _, r := range n.file.resolved {
		path, ok := strings.CutPrefix(r.reference, filePrefix)
		if !ok || !n.holds(r.path) {
			continue
		}
		if texts == nil {
			texts = map[string]string{}
		}
		texts[path] = r.text
	}
	return texts
}

// holds reports whether a path belongs to the value or to one below it.
func (n Node) holds(path string) bool {
	return n.path == "" || path == n.path || strings.HasPrefix(path, n.path+".")
}

// valueFault reports a mistake in the value, at the value.
func (n Node) valueFault(format string, args ...any) {
	n.file.fault(n.node.GetToken(), n.path, fmt.Sprintf(format, args...))
}

// Sound reports whether no fault was found yet in the value or in one below it.
func (n Node) Sound() bool {
	return n.file.expanded <= maxExpanded && !slices.ContainsFunc(n.file.faults, func(f Fault) bool { return n.holds(f.path) })
}

// Text reads a scalar as it is spelled, even if YAML would give it another type.
func (n Node) Text() string {
	text, _ := n.shown()
	return text
}

// Secret is Text for a scalar that faults must not show.
func (n Node) Secret() string {
	text, _ := n.scalar()
	if n.key != nil && text != "" && !n.refers() && (secretKey.MatchString(n.key.Value) || withPassword.MatchString(text)) {
		n.file.literal = true
	}
	return text
}

var (
	secretKey    = regexp.MustCompile(`(?i)secret|password|token|bearer|authorization|api-?key`)
	withPassword = regexp.MustCompile(`://[^/@:\s]*:[^/@\s]+@|password\s*=`)
)

// SecretFiles returns the files that references named, or that are secrets themselves, such as a private key, as far
// as the file was read.
func (f *File) SecretFiles() []string { return f.files }

// TrustedFiles returns the files that decide whom the program trusts, as far as the file was read.
func (f *File) TrustedFiles() []string { return f.trusted }

// HoldsSecrets reports whether the file literally contains a secret, as far as the names of keys and the forms of
// URLs show.
func (f *File) HoldsSecrets() bool { return f.literal }

// OneOf reads a scalar that must be one of some words.
func (n Node) OneOf(words ...string) string {
	text, ok := n.shown()
	if ok && !slices.Contains(words, text) {
		n.valueFault("%s is not known here: write %s", n.quoted(), strings.Join(words, " or "))
		return ""
	}
	return text
}

// Int reads a whole number between from and to.
func (n Node) Int(from, to int) int {
	return within(n, strconv.Atoi, from, to, "number", fmt.Sprintf("whole number: write one from %d to %d", from, to))
}

// Duration reads a length of time between from and to.
func (n Node) Duration(from, to time.Duration) time.Duration {
	how := "write a number with a unit, such as 200ms, 5s or 1m30s"
	if days, ok := inDays(n); ok {
		how = fmt.Sprintf("write %dh", 24*days)
	}
	return within(n, time.ParseDuration, from, to, "duration", "duration: "+how)
}

// inDays returns the number of days of a text such as 7d.
func inDays(n Node) (uint64, bool) {
	node, _ := n.plain()
	text, _ := literal(node)
	number, has := strings.CutSuffix(text, "d")
	days, err := strconv.ParseUint(number, 10, 16)
	return days, has && err == nil
}

// within reads a scalar that has a size. noun is what it is, and wanted is what a text that cannot be parsed is not.
func within[T int | time.Duration](n Node, parse func(string) (T, error), from, to T, noun, wanted string) T {
	text, ok := n.shown()
	if !ok {
		return 0
	}
	value, err := parse(text)
	switch {
	case err != nil:
		n.valueFault("%s is not a %s", n.quoted(), wanted)
	case value < from || value > to:
		n.valueFault("%s is out of bounds: write a %s from %v to %v", n.quoted(), noun, from, to)
	default:
		return value
	}
	return 0
}

// Percent reads a whole number of percent, from 0% to 100%.
func (n Node) Percent() int {
	text, ok := n.shown()
	if !ok {
		return 0
	}
	number, has := strings.CutSuffix(text, "%")
	value, err := strconv.Atoi(number)
	if !has || err != nil || value < 0 || value > 100 {
		n.valueFault("%s is not a percentage: write a whole number from 0%% to 100%%, such as 20%%", n.quoted())
		return 0
	}
	return value
}

// Texts reads a mapping of names to scalars that faults must not show.
func (n Node) Texts() map[string]string {
	m := n.AnyMapping()
	texts := make(map[string]string, len(m.names))
	for _, name := range m.names {
		texts[name] = m.nodes[name].Secret()
	}
	return texts
}

// List reads a sequence of texts that faults may show. It reads none once a bound of the file was exceeded, since each
// alias of a list leads to all of its elements again.
func (n Node) List() []string {
	node, ok := n.plain()
	if !ok {
		return nil
	}
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		n.wrongKind("a list")
		return nil
	}
	if n.file.merged += len(sequence.Values); n.file.merged > maxKeys {
		n.file.once(node.GetToken(), n.path, "the aliases of this file lead to too many entries of lists: write them out")
	}
	if n.file.bounded {
		return nil
	}
	texts := make([]string, len(sequence.Values))
	for i, value := range sequence.Values {
		if n.file.bounded { // by the elements before this one
			return nil
		}
		element := Node{file: n.file, node: value, key: value.GetToken(), path: join(n.path, strconv.Itoa(i+1))}
		texts[i], _ = element.shown()
	}
	return texts
}

// shown is scalar for a scalar that faults may show.
func (n Node) shown() (string, bool) {
	if node, ok := n.plain(); ok {
		n.file.reveal(node)
	}
	return n.scalar()
}

// scalar reads the node as text, with references replaced.
func (n Node) scalar() (string, bool) {
	node, ok := n.plain()
	if !ok {
		return "", false
	}
	value, ok := literal(node)
	if !ok {
		n.wrongKind("a single value")
		return "", false
	}
	if hasReference(value) {
		n.file.references = append(n.file.references, n.path)
	}
	faults := len(n.file.faults)
	text := n.file.resolve(node.GetToken(), n.path, value)
	return text, len(n.file.faults) == faults && !n.file.bounded
}

// literal returns the text of a scalar. It takes numbers and the like as they are spelled, so that leading zeros
// stay.
func literal(node ast.Node) (string, bool) {
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	case ast.ScalarNode:
		return node.GetToken().Value, true
	default:
		return "", false
	}
}

// plain follows anchors and aliases to the value itself.
func (n Node) plain() (ast.Node, bool) {
	node := n.node
	for range len(n.file.anchors) + 2 {
		switch v := node.(type) {
		case nil:
			return nil, false
		case *ast.NullNode:
			n.Fault("there is no value: give one, or remove the key")
			return nil, false
		case *ast.TagNode:
			n.valueFault("a tag is not allowed here: remove it, or quote the value if it begins with !")
			return nil, false
		case *ast.AnchorNode:
			node = v.Value
		case *ast.AliasNode:
			name := v.Value.GetToken().Value
			if node = n.file.anchors[name]; node == nil {
				n.valueFault("there is no such anchor: define it, or quote the value if it begins with *")
				return nil, false
			}
		default:
			return node, true
		}
	}
	n.valueFault("the alias leads back to itself: write the value out")
	return nil, false
}

// IsScalar reports whether the node is a single value, such as a bare word.
func (n Node) IsScalar() bool {
	if n.node == nil || n.node.Type() == ast.NullType {
		return false
	}
	_, ok := literal(n.node)
	return ok
}

func (n Node) isMapping() bool {
	node := n.node
	if anchor, ok := node.(*ast.AnchorNode); ok {
		node = anchor.Value
	}
	_, ok := entries(node)
	return ok
}

func (n Node) wrongKind(want string) {
	if n.example != "" {
		want += ", as in " + n.example
	}
	n.Fault("expected %s", want)
}

// quoted returns the scalar as it is spelled in the file. It does not replace a reference, which may name a secret.
func (n Node) quoted() string {
	node, _ := n.plain()
	text, _ := literal(node)
	if !single(text) {
		return "this text"
	}
	return strconv.Quote(spelling(text))
}

var plainName = regexp.MustCompile(`^[\w-]+$`)

func join(path, name string) string {
	if !plainName.MatchString(name) {
		name = strconv.Quote(spelling(name))
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
