package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// commandsPage is the page that is generated as a whole.
const commandsPage = "docs/commands.md"

const commandsIntroduction = `# Commands

<!-- generated: make reference. Each block is what --help of the command prints. -->

[Operations](operations.md#commands) explains what the commands change, and when to use
each. This page has the text of ` + "`ordered-dispatcher COMMAND --help`" + `. Every command has these flags,
which are not repeated below:

`

// commands returns the page of all commands, as the program below root describes them.
func commands(root string) (string, error) {
	dir, err := os.MkdirTemp("", "reference-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "ordered-dispatcher")
	build := exec.Command("go", "build", "-o", program, "./cmd/ordered-dispatcher")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	whole, err := help(program)
	if err != nil {
		return "", err
	}
	flags, list, found := strings.Cut(whole[strings.Index(whole, "\nFlags:\n")+1:], "\nCommands:\n")
	if !found {
		return "", fmt.Errorf("the program's help has no list of flags and of commands:\n%s", whole)
	}
	page := commandsIntroduction + block(flags)
	for _, m := range commandName.FindAllStringSubmatch(list, -1) {
		text, err := help(program, strings.Fields(m[1])...)
		if err != nil {
			return "", err
		}
		page += "\n## " + m[1] + "\n\n" + block(withoutCommonFlags(text))
	}
	return page, nil
}

// commandName finds a command, with its group, in the list of all.
var commandName = regexp.MustCompile(`(?m)^  ([a-z]\S*(?: [a-z]\S*)?)(?:  |$)`)

// help returns what the program prints about a command, for a width of 80.
func help(program string, command ...string) (string, error) {
	cmd := exec.Command(program, append(command, "--help")...)
	cmd.Env = []string{"HOME=" + filepath.Dir(program)}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v --help: %w\n%s", command, err, out)
	}
	return string(out), nil
}

// commonFlags finds the first paragraph of the flags, which is the same for all commands.
var commonFlags = regexp.MustCompile(`\n\nFlags:\n  -h, --help(?:.+\n)+`)

func withoutCommonFlags(text string) string {
	place := commonFlags.FindStringIndex(text)
	if place == nil {
		return text
	}
	own := strings.TrimLeft(text[place[1]:], "\n")
	if own == "" {
		return text[:place[0]]
	}
	return text[:place[0]] + "\n\nFlags:\n" + own
}

func block(text string) string { return "```text\n" + strings.TrimSpace(text) + "\n```\n" }
