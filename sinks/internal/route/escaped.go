package route

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"text/template"
	"text/template/parse"
)

// escaping is the name under which a template calls its escape function. No template can be written that names it.
const escaping = "_escape"

// Escaped is New for an address in which some characters have a meaning. Everything that the template prints, be it a
// field, the result of a function or a literal, goes through escape. The text outside of {{ }} stays as written. Of
// returns an error of escape unchanged. There is no define, block or template.
//
// Escaped's own errors quote only text within {{ }}, since an address may hold secrets.
func Escaped(text string, escape func(value string) (string, error)) (*Template, error) {
	return escaped(text, functions, func(value any) (string, error) {
		text, err := escape(fmt.Sprint(value))
		if err != nil {
			return "", &escapeError{err}
		}
		return text, nil
	})
}

// escaped makes everything that a template prints go through escape.
func escaped(text string, functions template.FuncMap, escape func(value any) (string, error)) (*Template, error) {
	plain, err := parseText(text, functions)
	if err != nil {
		return nil, err
	}
	if err := plain.try(); err != nil {
		return nil, err
	}
	all := maps.Clone(functions)
	all[escaping] = escape
	t, err := parseText(text, all)
	if err != nil || t.template == nil {
		return t, err
	}
	if len(t.template.Templates()) > 1 {
		return nil, errors.New("define and block have no place in it")
	}
	return t, escapeList(t.template.Root)
}

// escapeError distinguishes an error of the escape function from one of the template.
type escapeError struct{ error }

// escapeList appends the escape function to everything that is printed, as html/template does with its own.
func escapeList(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			escapePipe(node.Pipe)
		case *parse.TemplateNode:
			return errors.New("template has no place in it")
		}
		if branch := branchOf(node); branch != nil {
			if err := errors.Join(escapeList(branch.List), escapeList(branch.ElseList)); err != nil {
				return err
			}
		}
	}
	return nil
}

// branchOf returns the branches of if, with and range; nil if a node is none of them.
func branchOf(node parse.Node) *parse.BranchNode {
	switch node := node.(type) {
	case *parse.IfNode:
		return &node.BranchNode
	case *parse.WithNode:
		return &node.BranchNode
	case *parse.RangeNode:
		return &node.BranchNode
	default:
		return nil
	}
}

// escapePipe leaves assignments alone, which print nothing.
func escapePipe(pipe *parse.PipeNode) {
	if len(pipe.Decl) > 0 {
		return
	}
	pipe.Cmds = append(pipe.Cmds, &parse.CommandNode{
		NodeType: parse.NodeCommand,
		Pos:      pipe.Pos,
		Args:     []parse.Node{parse.NewIdentifier(escaping).SetTree(nil).SetPos(pipe.Pos)},
	})
}

// Skeleton returns the text outside of {{ }}, of all branches, with value in the place of each printed text.
func (t *Template) Skeleton(value string) string {
	if t.template == nil {
		return t.fixed
	}
	var text strings.Builder
	skeleton(&text, t.template.Root, value)
	return text.String()
}

func skeleton(text *strings.Builder, list *parse.ListNode, value string) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.TextNode:
			text.Write(node.Text)
		case *parse.ActionNode:
			if len(node.Pipe.Decl) == 0 {
				text.WriteString(value)
			}
		}
		if branch := branchOf(node); branch != nil {
			skeleton(text, branch.List, value)
			skeleton(text, branch.ElseList, value)
		}
	}
}
