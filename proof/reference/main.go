package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	files, err := generate(root)
	if err == nil {
		err = write(root, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// generate returns the text of each file that has generated parts, by its path below root.
func generate(root string) (map[string]string, error) {
	file, err := readAll(root)
	if err != nil {
		return nil, err
	}
	schema, err := schemaOf(file)
	if err != nil {
		return nil, err
	}
	help, err := commands(root)
	if err != nil {
		return nil, err
	}
	files := map[string]string{"docs/dispatcher.schema.json": schema, commandsPage: help}
	for _, p := range pagesOf(file) {
		old, err := os.ReadFile(filepath.Join(root, p.path))
		if err != nil {
			return nil, err
		}
		if files[p.path], err = p.fill(string(old)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func write(root string, files map[string]string) error {
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
