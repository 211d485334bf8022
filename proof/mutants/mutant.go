package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is the program with one protection switched off.
type mutant struct {
	// protection is what is switched off, and how.
	protection string
	changes    []change
	// killer is the test that fails on it, in its package.
	pkg, killer string
}

// change replaces a text of a file that stands in it once.
type change struct{ file, old, new string }

// apply returns the changed files by their names.
func (m mutant) apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, c := range m.changes {
		text, ok := changed[c.file]
		if !ok {
			bytes, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				return nil, fmt.Errorf("mutant %q: %w", m.protection, err)
			}
			text = string(bytes)
		}
		if n := strings.Count(text, c.old); n != 1 {
			return nil, fmt.Errorf("mutant %q: this stands %d times in %s, not once; let the mutant follow the code:\n%s", m.protection, n, c.file, c.old)
		}
		changed[c.file] = strings.Replace(text, c.old, c.new, 1)
	}
	return changed, nil
}

// overlay writes the changed files below dir and returns the file that names them
// to the go command.
func (m mutant) overlay(root, dir string) (string, error) {
	changed, err := m.apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range changed {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// where are the files that are changed.
func (m mutant) where() string {
	var files []string
	for _, c := range m.changes {
		if name := "`" + c.file + "`"; len(files) == 0 || files[len(files)-1] != name {
			files = append(files, name)
		}
	}
	return strings.Join(files, ", ")
}
