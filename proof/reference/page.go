package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// page is a document with lists of settings between marks.
type page struct {
	path  string
	lists map[string][]setting // by the word in the mark; "" = none
}

const (
	beginMark = "<!-- generated: make reference"
	endMark   = "<!-- generated up to here -->"
	width     = 99
)

// pagesOf are the documents about a file.
func pagesOf(file setting) []page {
	process := file.named("processes").below
	rule := file.named("retention").below
	target := file.named("notify").named("targets").below
	pages := []page{{path: "docs/configuration.md", lists: map[string][]setting{" file": file.below, " process": process, " rule": rule, " target": target}}}
	for _, s := range process {
		if s.form != oneOf {
			continue
		}
		for _, kind := range s.below {
			if len(kind.below) > 0 {
				pages = append(pages, page{path: kind.page, lists: map[string][]setting{"": kind.below}})
			}
		}
	}
	return pages
}

var generated = regexp.MustCompile(`(?s)(` + beginMark + `( \w+)? -->\n).*?(` + endMark + `)`)

// fill returns the text of the page with its lists as they are now.
func (p page) fill(old string) (string, error) {
	var faults []error
	found := 0
	now := generated.ReplaceAllStringFunc(old, func(part string) string {
		m := generated.FindStringSubmatch(part)
		settings, known := p.lists[m[2]]
		if !known {
			faults = append(faults, fmt.Errorf("%s: there is no list%s", p.path, m[2]))
		}
		found++
		return m[1] + "\n" + p.list(settings, "", 0) + "\n" + m[3]
	})
	if found != len(p.lists) {
		faults = append(faults, fmt.Errorf("%s has %d of %d lists: put each between %s --> and %s", p.path, found, len(p.lists), beginMark, endMark))
	}
	return now, errors.Join(faults...)
}

// list is a list of settings, with those below them.
func (p page) list(settings []setting, above string, depth int) string {
	var b strings.Builder
	for _, s := range settings {
		name := above + s.Name
		b.WriteString(item("`"+name+"`: "+p.relative(s.meaning()), strings.Repeat("  ", depth)))
		if s.form == keys {
			b.WriteString(p.list(s.below, name+".", depth+1))
		}
	}
	return b.String()
}

// wordPattern finds what no line may break: words, with the code and the links in them.
var wordPattern = regexp.MustCompile("(?:`[^`]*`|\\[[^\\]]*\\]\\([^)]*\\)|\\S)+")

// item is an entry of a list.
func item(text, margin string) string {
	var b strings.Builder
	line := margin + "-"
	for _, word := range wordPattern.FindAllString(text, -1) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width && strings.TrimSpace(line) != "" {
			b.WriteString(line + "\n")
			line = margin + " "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// relative has links begin at the page.
func (p page) relative(text string) string {
	return link.ReplaceAllStringFunc(text, func(found string) string {
		m := link.FindStringSubmatch(found)
		target, err := filepath.Rel(path.Dir(p.path), m[1])
		if err != nil {
			return found
		}
		return "](" + filepath.ToSlash(target) + m[2] + ")"
	})
}
