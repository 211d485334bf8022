package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// change replaces one piece of a declaration by another, or deletes it.
//
// The declaration has the form that go doc takes: "cursor.Lease.Advance" is a method, "cursor.advanceSQL" a constant.
// What is not Go has the name of its file: "migrations/00003_promises.sql".
type change struct {
	at, old, new string
	// text has old and new be a part of a string of the declaration, and not Go.
	text bool
	// ordinal is that of the match to change, from 1; 0 if there must be one match alone.
	ordinal int
}

// code changes Go: an expression, an element of a literal, statements, or cases of a switch. Two pieces of Go match if
// their syntax trees are the same, so formatting and comments do not count. No new text deletes the old one.
func code(at, old, new string) change { return change{at: at, old: old, new: new} }

// text changes a part of a string, as a statement of SQL is. All white space is alike.
func text(at, old, new string) change { return change{at: at, old: old, new: new, text: true} }

// nth is the change of the n-th match of several, from 1.
func (c change) nth(n int) change {
	c.ordinal = n
	return c
}

// edit replaces the bytes of a file from one offset to another.
type edit struct {
	file     string
	from, to int
	new      string
}

// edit is the change at its place in the program.
func (c change) edit(p *program) (edit, error) {
	d, err := p.find(c.at)
	if err != nil {
		return edit{}, err
	}
	all, err := c.matches(d)
	switch {
	case err != nil:
		return edit{}, err
	case c.ordinal == 0 && len(all) == 1:
		return all[0], nil
	case c.ordinal > 0 && c.ordinal <= len(all):
		return all[c.ordinal-1], nil
	default:
		return edit{}, fmt.Errorf("%s has %d matches, not one, of:\n%s", c.at, len(all), c.old)
	}
}

// matches are the edits of all places in a declaration where the old text is.
func (c change) matches(d declaration) ([]edit, error) {
	if c.text {
		return c.inStrings(d), nil
	}
	pattern, err := parse(c.old)
	if err != nil {
		return nil, err
	}
	return c.inTree(d, pattern)
}

// inStrings matches the old text in the strings of a declaration, or in all of a file that is not Go.
func (c change) inStrings(d declaration) []edit {
	words := strings.Fields(c.old)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	pattern := regexp.MustCompile(strings.Join(words, `\s+`))
	var all []edit
	if d.node == nil {
		for _, at := range pattern.FindAllStringIndex(d.source, -1) {
			all = append(all, edit{d.file, at[0], at[1], c.new})
		}
		return all
	}
	ast.Inspect(d.node, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, _ := strconv.Unquote(literal.Value)
		for _, at := range pattern.FindAllStringIndex(value, -1) {
			e := d.edit(literal, literal, strconv.Quote(value[:at[0]]+c.new+value[at[1]:]))
			if literal.Value[0] == '`' {
				e = edit{d.file, e.from + 1 + at[0], e.from + 1 + at[1], c.new}
			}
			all = append(all, e)
		}
		return true
	})
	return all
}

// inTree matches nodes of Go.
func (c change) inTree(d declaration, pattern []ast.Node) ([]edit, error) {
	var all []edit
	var err error
	var parents []ast.Node
	ast.Inspect(d.node, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		for run := range runs(n, len(pattern)) {
			if !slices.EqualFunc(run, pattern, same) {
				continue
			}
			e := d.edit(run[0], run[len(run)-1], c.new)
			if _, ok := n.(ast.Expr); ok && c.new == "" {
				if e, err = d.without(parents[len(parents)-1], n); err != nil {
					return false
				}
			}
			all = append(all, e)
		}
		parents = append(parents, n)
		return true
	})
	return all, err
}

// runs are what a pattern of n nodes can match at a node: the node itself, or any n of its statements in a row.
func runs(node ast.Node, n int) func(yield func([]ast.Node) bool) {
	return func(yield func([]ast.Node) bool) {
		if n == 1 {
			yield([]ast.Node{node})
			return
		}
		var list []ast.Stmt
		switch node := node.(type) {
		case *ast.BlockStmt:
			list = node.List
		case *ast.CaseClause:
			list = node.Body
		case *ast.CommClause:
			list = node.Body
		}
		for i := 0; i+n <= len(list); i++ {
			run := make([]ast.Node, n)
			for j := range run {
				run[j] = list[i+j]
			}
			if !yield(run) {
				return
			}
		}
	}
}

// parse returns the nodes of a piece of Go.
func parse(text string) ([]ast.Node, error) {
	if expr, err := parser.ParseExpr(text); err == nil {
		return []ast.Node{expr}, nil
	}
	// Before statements, where it would be one with a label.
	if expr, err := parser.ParseExpr("_{" + text + "}"); err == nil {
		if literal, ok := expr.(*ast.CompositeLit); ok && len(literal.Elts) == 1 {
			return []ast.Node{literal.Elts[0]}, nil
		}
	}
	statements, err := parseStatements(text)
	if err != nil {
		cases, errCases := parseStatements("switch {\n" + text + "\n}")
		if errCases != nil {
			return nil, fmt.Errorf("neither an expression nor statements (%w):\n%s", err, text)
		}
		statements = cases[0].(*ast.SwitchStmt).Body.List
	}
	if len(statements) == 0 {
		return nil, fmt.Errorf("nothing to match: %q", text)
	}
	nodes := make([]ast.Node, len(statements))
	for i, s := range statements {
		nodes[i] = s
	}
	return nodes, nil
}

func parseStatements(text string) ([]ast.Stmt, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return file.Decls[0].(*ast.FuncDecl).Body.List, nil
}

// same compares two syntax trees without their positions and comments.
func same(a, b ast.Node) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

func sameValue(a, b reflect.Value) bool {
	if a.Kind() == reflect.Interface {
		a, b = a.Elem(), b.Elem()
	}
	switch {
	case !a.IsValid() || !b.IsValid():
		return a.IsValid() == b.IsValid()
	case a.Type() != b.Type():
		return false
	}
	switch of := a.Interface().(type) {
	case token.Pos, *ast.CommentGroup:
		return true
	case ast.BasicLit:
		return sameLiteral(of, b.Interface().(ast.BasicLit))
	case ast.CallExpr:
		if of.Ellipsis.IsValid() != b.Interface().(ast.CallExpr).Ellipsis.IsValid() {
			return false
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || sameValue(a.Elem(), b.Elem()))
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}

// sameLiteral compares strings by what they mean, with all white space alike.
func sameLiteral(a, b ast.BasicLit) bool {
	if a.Kind != token.STRING || b.Kind != token.STRING {
		return a.Kind == b.Kind && a.Value == b.Value
	}
	x, _ := strconv.Unquote(a.Value)
	y, _ := strconv.Unquote(b.Value)
	return slices.Equal(strings.Fields(x), strings.Fields(y))
}
