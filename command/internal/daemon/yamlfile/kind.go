package yamlfile

import "github.com/goccy/go-yaml/ast"

// IsMapping reports whether the node holds keys with values.
func (n Node) IsMapping() bool {
	switch n.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	default:
		return false
	}
}
