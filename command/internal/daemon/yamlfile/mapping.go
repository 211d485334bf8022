package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/closest"
)

// Mapping holds the keys of a value and their nodes.
type Mapping struct {
	self  Node
	nodes map[string]Node
	names []string
}

// maxMerges bounds how deep merge keys may lead to others.
const maxMerges = 10

// maxKeys bounds how many keys and entries of lists are read in a file, since merge keys and aliases can lead to the
// same ones again and again. A file that a person writes has far fewer.
const maxKeys = 100_000

// maxKey bounds the length of a key, in bytes. A key is a part of the path of each value below it.
const maxKey = 1 << 10

// Mapping reads the node as a mapping of the known keys.
func (n Node) Mapping(known ...string) Mapping { return n.known(known, nil) }

// known is Mapping. below has the paths of keys that belong into a value of one of the known ones.
func (n Node) known(known []string, below map[string]string) Mapping {
	m := Mapping{self: n, nodes: map[string]Node{}}
	n.mapping(&m, 0, "keys with values: "+keys(known))
	for _, name := range m.names {
		at := m.nodes[name].key
		switch {
		case slices.Contains(known, name):
			delete(n.file.hidden, at)
		case n.file.hidden[at]:
			n.file.fault(at, n.path, "a key or a value is missing here: "+keys(known))
		default:
			n.file.fault(at, n.path, fmt.Sprintf("the key %q is not known: %s", name, suggestion(name, known, below)))
		}
	}
	return m
}

// spelledKey returns a key in the form that may be shown: itself, if the first one of that name may be.
func (f *File) spelledKey(at *token.Token) string {
	if !single(at.Value) {
		return "at this place"
	}
	return strconv.Quote(at.Value)
}

// suggestion says which keys there are, and which of them a wrong one was probably meant to be.
func suggestion(wrong string, known []string, below map[string]string) string {
	if meant := cmp.Or(below[wrong], closest.Name(wrong, known)); meant != "" {
		return fmt.Sprintf("did you mean %s? T%s", meant, strings.TrimPrefix(keys(known), "t"))
	}
	return keys(known)
}

func keys(known []string) string {
	if len(known) == 0 {
		return "there are no keys here, write {}"
	}
	return "the keys here are " + strings.Join(known, ", ")
}

// AnyMapping reads the node as a mapping whose keys are names.
func (n Node) AnyMapping() Mapping {
	m := Mapping{self: n, nodes: map[string]Node{}}
	n.mapping(&m, 0, "keys with values")
	return m
}

// mapping adds the keys of n that m does not have yet. want describes the value that is needed, for a node without
// one.
func (n Node) mapping(m *Mapping, depth int, want string) {
	node, ok := n.plain()
	if !ok {
		return
	}
	values, ok := entries(node)
	if !ok || depth > maxMerges {
		n.wrongKind(want)
		return
	}
	own := map[string]bool{}
	var merges []Node
	for _, value := range values {
		at := value.Key.GetToken()
		if n.file.merged++; n.file.merged > maxKeys {
			n.file.once(at, n.path, "the merge keys of this file lead to too many keys: write them out")
			return
		}
		if value.Key.IsMergeKey() {
			merges = append(merges, Node{file: n.file, node: value.Value, key: at, path: n.path})
			continue
		}
		name := at.Value
		if len(name) > maxKey {
			n.file.once(at, n.path, fmt.Sprintf("a key has more than %d bytes: shorten it", maxKey))
			return
		}
		child := Node{file: n.file, node: value.Value, key: at, path: join(n.path, name)}
		switch {
		case own[name]:
			n.file.fault(at, n.path, fmt.Sprintf("the key %s is here twice: keep one", n.file.spelledKey(at)))
			continue
		case hasReference(name):
			n.file.fault(at, n.path, "a key cannot hold a reference: write it out")
			continue
		}
		own[name] = true
		n.file.revealKey(value)
		if _, overridden := m.nodes[name]; !overridden {
			m.nodes[name] = child
			m.names = append(m.names, name)
		}
	}
	for _, merge := range merges {
		merge.mapping(m, depth+1, want)
	}
}

func entries(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}, true
	default:
		return nil, false
	}
}

// Names returns the keys in the order of the file.
func (m Mapping) Names() []string { return m.names }

// Get returns the node of a key, and whether the key is there.
func (m Mapping) Get(name string) (Node, bool) {
	n, ok := m.nodes[name]
	return n, ok
}

// Need is Get for a required key.
func (m Mapping) Need(name, example string) (Node, bool) {
	n, ok := m.nodes[name]
	if !ok && m.self.isMapping() {
		m.self.Fault("the key %q is missing: add it, as in %s", name, example)
	}
	return n, ok
}

// Read calls read with the node of a key, if it is there.
func (m Mapping) Read(name string, read func(Node)) {
	if n, ok := m.nodes[name]; ok {
		read(n)
	}
}
