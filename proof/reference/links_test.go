package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinks_EachLeadsSomewhere: the files and the anchors of all documents of the repository. What a document lists before it is there,
// such as a page of the site, is no link.
func TestLinks_EachLeadsSomewhere(t *testing.T) {
	t.Parallel()
	paths := documents(t)
	require.Greater(t, len(paths), 50)
	links, all := 0, tree{}
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		all[path] = parseDocument(string(text))
		links += len(all[path].links)
	}
	require.Greater(t, links, 500)
	for _, path := range paths {
		for _, fault := range all.faults(path) {
			t.Error(fault)
		}
	}
}

func TestLinks_FindsThoseThatLeadNowhere(t *testing.T) {
	t.Parallel()
	a := parseDocument("# The `a` of *x*, [b](b.md)!\n\n[1](#the-a-of-x-b) [2](#gone)\n[3](b.md#twice-1) [4](b.md#twice-2) [5](c.md)\n\n" +
		"```sh\n[code](nowhere.md)\n```\n    [code](nowhere.md)\n`[code](nowhere.md)` ![6](no.svg) [7](https://example.org/x#y)\n\n[8]: d.md\n")
	b := parseDocument("# B\n\n## Twice\n\n## Twice\n")
	require.Equal(t, []string{
		"docs/a.md: #gone: no such heading in docs/a.md",
		"docs/a.md: b.md#twice-2: no such heading in docs/b.md",
		"docs/a.md: c.md: no such file",
		"docs/a.md: no.svg: no such file",
		"docs/a.md: d.md: no such file",
	}, tree{"docs/a.md": a, "docs/b.md": b}.faults("docs/a.md"))
}

// documents are the paths of all Markdown files, from the root.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"node_modules", "testdata", "dist", "target", "build"}, entry.Name())) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			local, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			paths = append(paths, filepath.ToSlash(local))
		}
		return nil
	}))
	return paths
}

// document is what a Markdown file has of links.
type document struct {
	links   []string
	anchors []string
}

var (
	fencedCode   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	indentedCode = regexp.MustCompile(`(?m)(?:^|\n\n)(?: {4}.*\n?)+`)
	inlineCode   = regexp.MustCompile("`[^`\n]*(?:\n[^`\n]*)?`")
	inlineLink   = regexp.MustCompile(`\]\(\s*([^)\s]+)(?:\s+"[^"]*")?\)`)
	namedLink    = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} (.*?)\s*$`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func parseDocument(text string) (d document) {
	text = fencedCode.ReplaceAllString(text, "")
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchor := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(linkText.ReplaceAllString(m[1], "$1")), ""), " ", "-")
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		d.anchors = append(d.anchors, anchor)
	}
	text = inlineCode.ReplaceAllString(indentedCode.ReplaceAllString(text, "\n\n"), "")
	for _, pattern := range []*regexp.Regexp{inlineLink, namedLink} {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			d.links = append(d.links, m[1])
		}
	}
	return d
}

// tree has documents by their paths.
type tree map[string]document

// faults lists the links of a document that lead nowhere.
func (all tree) faults(path string) (faults []string) {
	for _, link := range all[path].links {
		if strings.Contains(link, ":") {
			continue // another host
		}
		file, anchor, hasAnchor := strings.Cut(link, "#")
		target := path
		if file != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
		}
		d, known := all[target]
		if _, err := os.Stat(filepath.Join(root, target)); err != nil && !known {
			faults = append(faults, fmt.Sprintf("%s: %s: no such file", path, link))
		} else if hasAnchor && known && !slices.Contains(d.anchors, anchor) {
			faults = append(faults, fmt.Sprintf("%s: %s: no such heading in %s", path, link, target))
		}
	}
	return faults
}
