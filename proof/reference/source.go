package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

const (
	module  = "github.com/ordered-dispatcher/ordered-dispatcher"
	daemon  = "command/internal/daemon"
	tlsFile = "command/internal/daemon/yamlfile"
)

// reader reads structs from the source below a directory.
type reader struct {
	root     string
	packages map[string]map[string]*declared // by directory and name
}

// declared is a type, with what its file imports by name.
type declared struct {
	dir       string
	spec      *ast.TypeSpec
	imports   map[string]string
	unmarshal bool // it reads its own text
}

// readAll returns the file as one setting.
func readAll(root string) (setting, error) {
	r := &reader{root: root, packages: map[string]map[string]*declared{}}
	file, err := r.settings(daemon, "Config")
	if err != nil {
		return setting{}, err
	}
	process, err := r.settings(daemon, "Process")
	if err != nil {
		return setting{}, err
	}
	rule, err := r.settings("retention", "Rule")
	if err != nil {
		return setting{}, err
	}
	target, err := r.settings("command/internal/notify", "Target")
	if err != nil {
		return setting{}, err
	}
	kinds, err := r.kinds()
	if err != nil {
		return setting{}, err
	}
	for i := range process {
		if process[i].Name == "sink" {
			process[i].form, process[i].below = oneOf, kinds
		}
	}
	for i := range file {
		switch file[i].Name {
		case "processes":
			file[i].form, file[i].below = entries, process
		case "retention":
			file[i].form, file[i].below = entries, rule
		case "notify":
			targets := &file[i].below[slices.IndexFunc(file[i].below, func(s setting) bool { return s.Name == "targets" })]
			targets.form, targets.below = entries, target
		}
	}
	return setting{form: keys, below: file}, nil
}

// kinds are the kinds of sinks: the folders below sinks that have a Spec.
func (r *reader) kinds() ([]setting, error) {
	folders, err := os.ReadDir(filepath.Join(r.root, "sinks"))
	if err != nil {
		return nil, err
	}
	var kinds []setting
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		dir := path.Join("sinks", folder.Name())
		name, page, err := r.spec(dir)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		below, err := r.settings(dir, "Config")
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, setting{Knob: knob.Knob{Name: name}, form: keys, page: path.Join("docs/sinks", page), below: below})
	}
	return kinds, nil
}

// spec returns what the function Spec of a folder says; "" if there is none.
func (r *reader) spec(dir string) (name, page string, err error) {
	files, err := r.parse(dir)
	if err != nil {
		return "", "", err
	}
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name != "Spec" {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				pair, ok := n.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				if value, ok := pair.Value.(*ast.BasicLit); ok && value.Kind == token.STRING {
					into := map[string]*string{"Name": &name, "Page": &page}[pair.Key.(*ast.Ident).Name]
					*into, _ = strconv.Unquote(value.Value)
				}
				return true
			})
		}
	}
	return name, page, nil
}

// settings are those of a struct.
func (r *reader) settings(dir, name string) ([]setting, error) {
	d, err := r.find(dir, name)
	if err != nil {
		return nil, err
	}
	fields, ok := d.spec.Type.(*ast.StructType)
	if !ok {
		return nil, fmt.Errorf("%s.%s is no struct", dir, name)
	}
	var all []setting
	for _, field := range fields.Fields.List {
		found, err := r.field(d, field)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", dir, name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// field is the setting of a field, or those of an embedded struct; none if it is not set in a file.
func (r *reader) field(d *declared, field *ast.Field) ([]setting, error) {
	if len(field.Names) == 0 {
		embedded, err := r.follow(d, field.Type)
		if err != nil {
			return nil, err
		}
		return r.settings(embedded.dir, embedded.spec.Name.Name)
	}
	if field.Tag == nil {
		return nil, nil
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return nil, err
	}
	name := field.Names[0].Name
	k, ok := knob.FromField(reflect.StructField{Name: name, Tag: reflect.StructTag(tag)})
	if !ok || k.Name == "" || k.Library {
		return nil, nil
	}
	s := setting{Knob: k, text: meaning(name, field.Doc.Text())}
	if s.text == "" {
		return nil, fmt.Errorf("field %s has no comment", name)
	}
	s.form, s.below, err = r.form(d, field.Type)
	return []setting{s}, err
}

// form is how a value of a type is written, with the settings below it.
func (r *reader) form(d *declared, of ast.Expr) (form, []setting, error) {
	switch of := of.(type) {
	case *ast.StarExpr:
		return r.form(d, of.X)
	case *ast.MapType:
		return names, nil, nil
	case *ast.ArrayType:
		return list, nil, nil
	case *ast.Ident:
		if f, ok := map[string]form{"string": text, "int": number, "int64": number, "bool": truth}[of.Name]; ok {
			return f, nil, nil
		}
	case *ast.SelectorExpr:
		switch d.imports[of.X.(*ast.Ident).Name] + "." + of.Sel.Name {
		case "time.Duration":
			return duration, nil, nil
		case "crypto/tls.Config":
			below, err := r.settings(tlsFile, "TLS")
			return keys, below, err
		}
	}
	named, err := r.follow(d, of)
	switch {
	case err != nil:
		return text, nil, err
	case named.unmarshal:
		return text, nil, nil
	}
	if _, ok := named.spec.Type.(*ast.StructType); ok {
		below, err := r.settings(named.dir, named.spec.Name.Name)
		return keys, below, err
	}
	return r.form(named, named.spec.Type)
}

// follow returns the type of ours that an expression in the file of d names.
func (r *reader) follow(d *declared, of ast.Expr) (*declared, error) {
	switch of := of.(type) {
	case *ast.Ident:
		return r.find(d.dir, of.Name)
	case *ast.SelectorExpr:
		if dir, ours := strings.CutPrefix(d.imports[of.X.(*ast.Ident).Name], module+"/"); ours {
			return r.find(dir, of.Sel.Name)
		}
	}
	return nil, fmt.Errorf("the type %T cannot be read from a file", of)
}

func (r *reader) find(dir, name string) (*declared, error) {
	if r.packages[dir] == nil {
		files, err := r.parse(dir)
		if err != nil {
			return nil, err
		}
		r.packages[dir] = types(dir, files)
	}
	d := r.packages[dir][name]
	if d == nil {
		return nil, fmt.Errorf("%s has no type %s", dir, name)
	}
	return d, nil
}

// types are those that files declare.
func types(dir string, files []*ast.File) map[string]*declared {
	all := map[string]*declared{}
	unmarshal := map[string]bool{}
	for _, file := range files {
		imports := map[string]string{}
		for _, i := range file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			name := path.Base(imported)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = imported
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "UnmarshalText" && d.Recv != nil {
					unmarshal[receiver(d)] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						all[s.Name.Name] = &declared{dir: dir, spec: s, imports: imports}
					}
				}
			}
		}
	}
	for name := range unmarshal {
		all[name].unmarshal = true
	}
	return all
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	return of.(*ast.Ident).Name
}

// parse returns the files of a directory without its tests, in the order of their names.
func (r *reader) parse(dir string) ([]*ast.File, error) {
	entries, err := os.ReadDir(filepath.Join(r.root, dir))
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go")
	})
	files := make([]*ast.File, len(entries))
	for i, e := range entries {
		if files[i], err = parser.ParseFile(token.NewFileSet(), filepath.Join(r.root, dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// inTheFile begins the paragraph of a comment that is for users of the program.
const inTheFile = "In the file: "

// meaning is the text of a comment for users of the program, on one line.
func meaning(field, comment string) string {
	if _, text, ok := strings.Cut(comment, inTheFile); ok {
		text, _, _ = strings.Cut(text, "\n\n")
		return strings.Join(strings.Fields(text), " ")
	}
	words := strings.Fields(comment)
	if len(words) > 0 && words[0] == field {
		words = words[1:]
	}
	if len(words) > 0 && words[0] == "is" {
		words = words[1:]
	}
	return strings.Join(words, " ")
}
