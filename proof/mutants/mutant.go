package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is the program with one protection switched off.
type mutant struct {
	// protection is what is switched off, and how.
	protection string
	// killer is the test that fails on it, after the directory of its package: "cursor.TestAdvance_RefusesSupersededEpoch".
	killer  string
	changes []change
	// ci says that CI runs it. All others run before a release (make soak).
	ci bool
}

func mutate(protection, killer string, changes ...change) mutant {
	return mutant{protection: protection, killer: killer, changes: changes}
}

// inCI is for one mutant of each invariant of a doc.go, the most likely one to be lost.
func (m mutant) inCI() mutant {
	m.ci = true
	return m
}

// pkg is the package of the killer, as the go command takes it.
func (m mutant) pkg() string {
	dir, _, _ := strings.Cut(m.killer, ".")
	return "./" + dir
}

// test is the name of the killer in its package.
func (m mutant) test() string {
	_, test, _ := strings.Cut(m.killer, ".")
	return test
}

// apply returns the changed files by their names.
func (m mutant) apply(p *program) (map[string]string, error) {
	edits := map[string][]edit{}
	for _, c := range m.changes {
		e, err := c.edit(p)
		if err != nil {
			return nil, fmt.Errorf("mutant %q: let it follow the code; the change would have one match in %v: %w", m.protection, p.elsewhere(c), err)
		}
		edits[e.file] = append(edits[e.file], e)
	}
	changed := map[string]string{}
	for file, all := range edits {
		text, err := os.ReadFile(filepath.Join(p.root, file))
		if err != nil {
			return nil, err
		}
		if changed[file], err = spliced(string(text), all); err != nil {
			return nil, fmt.Errorf("mutant %q: %w", m.protection, err)
		}
	}
	return changed, nil
}

// spliced is a text with edits made, from the last to the first.
func spliced(text string, edits []edit) (string, error) {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	end := len(text)
	for _, e := range edits {
		if e.to > end {
			return "", errors.New("two changes overlap")
		}
		text, end = text[:e.from]+e.new+text[e.to:], e.from
	}
	return text, nil
}

// overlay writes the changed files below dir and returns the file that names them
// to the go command.
func (m mutant) overlay(p *program, dir string) (string, error) {
	changed, err := m.apply(p)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range changed {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(p.root, file)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// where are the declarations that are changed.
func (m mutant) where() string {
	var all []string
	for _, c := range m.changes {
		if name := "`" + c.at + "`"; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}
