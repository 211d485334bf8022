package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// program is the source text below a directory. It parses a package when that is first asked for.
type program struct {
	root     string
	mu       sync.Mutex
	packages map[string]map[string][]declaration
}

func newProgram(root string) *program {
	return &program{root: root, packages: map[string]map[string][]declaration{}}
}

// declaration is a function, method, type, constant or variable of a package, or a file as a whole that is not Go.
type declaration struct {
	file, source string
	node         ast.Node // nil: a file as a whole
	start        token.Pos
}

// edit is that of all from the first node to the last.
func (d declaration) edit(first, last ast.Node, new string) edit {
	return edit{d.file, int(first.Pos() - d.start), int(last.End() - d.start), new}
}

// without is the edit that deletes an expression where a list or a statement can do without it.
func (d declaration) without(parent ast.Node, n ast.Node) (edit, error) {
	var list []ast.Expr
	switch parent := parent.(type) {
	case *ast.ExprStmt:
		return d.edit(n, n, ""), nil
	case *ast.CallExpr:
		list = parent.Args
	case *ast.CompositeLit:
		list = parent.Elts
	case *ast.CaseClause:
		list = parent.List
	}
	i := slices.Index(list, n.(ast.Expr))
	switch {
	case i < 0:
		return edit{}, errors.New("an expression that is no element of a list and no statement cannot be deleted")
	case i+1 < len(list):
		return edit{d.file, int(n.Pos() - d.start), int(list[i+1].Pos() - d.start), ""}, nil
	default: // a comma that follows is allowed after the element before it
		e := d.edit(n, n, "")
		if i > 0 {
			e.from = int(list[i-1].End() - d.start)
		} else if rest := d.source[e.to:]; strings.HasPrefix(rest, ",") {
			e.to++
		}
		return e, nil
	}
}

// find returns a declaration by its address.
func (p *program) find(at string) (declaration, error) {
	if text, err := os.ReadFile(filepath.Join(p.root, at)); err == nil {
		return declaration{file: at, source: string(text)}, nil
	}
	dir, name, _ := strings.Cut(at, ".")
	declared, err := p.declared(dir)
	if err != nil {
		return declaration{}, err
	}
	if n := len(declared[name]); n != 1 {
		return declaration{}, fmt.Errorf("%d declarations, not one, of %s", n, at)
	}
	return declared[name][0], nil
}

// declared are the declarations of the package in a directory, by name.
func (p *program) declared(dir string) (map[string][]declaration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if declared, ok := p.packages[dir]; ok {
		return declared, nil
	}
	files, err := filepath.Glob(filepath.Join(p.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	declared := map[string][]declaration{}
	for _, file := range files {
		match, err := build.Default.MatchFile(filepath.Split(file))
		if err != nil {
			return nil, err
		}
		if !match || strings.HasSuffix(file, "_test.go") {
			continue
		}
		if err := declare(declared, path.Join(dir, filepath.Base(file)), file); err != nil {
			return nil, err
		}
	}
	p.packages[dir] = declared
	return declared, nil
}

// declare adds the declarations of a file.
func declare(declared map[string][]declaration, name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	add := func(declaredName string, node ast.Node) {
		declared[declaredName] = append(declared[declaredName], declaration{name, string(text), node, tree.FileStart})
	}
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(receiver(decl)+decl.Name.Name, decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name, spec)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name, spec)
					}
				}
			}
		}
	}
	return nil
}

// receiver is the type of a method, with a full stop behind it.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name + "."
		default:
			return ""
		}
	}
}

// elsewhere are the declarations in which a change that has lost its place would have exactly one match.
func (p *program) elsewhere(c change) []string {
	var all []string
	_ = filepath.WalkDir(p.root, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || !entry.IsDir() {
			return err
		}
		if file != p.root && strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
			return fs.SkipDir
		}
		dir, err := filepath.Rel(p.root, file)
		if err != nil {
			return err
		}
		declared, err := p.declared(filepath.ToSlash(dir))
		if err != nil {
			return nil // it does not parse, so nothing has moved there
		}
		for name, of := range declared {
			if found, err := c.matches(of[0]); err == nil && len(found) == 1 {
				all = append(all, filepath.ToSlash(dir)+"."+name)
			}
		}
		return nil
	})
	slices.Sort(all)
	return all[:min(len(all), 5)]
}
