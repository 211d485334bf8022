package command

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// The scripts ask `ordered-dispatcher complete` for the words, so they need no change when commands do.
var (
	//go:embed completion/ordered-dispatcher.bash
	bashScript string
	//go:embed completion/_ordered-dispatcher
	zshScript string
	//go:embed completion/ordered-dispatcher.fish
	fishScript string
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the detailed help.
func (completionCommand) Help() string {
	return `bash: source <(ordered-dispatcher completion bash), in ~/.bashrc

zsh: ordered-dispatcher completion zsh > "${fpath[1]}/_ordered-dispatcher"

fish: ordered-dispatcher completion fish > ~/.config/fish/completions/ordered-dispatcher.fish`
}

// Run is called by kong.
func (c *completionCommand) Run(sys system) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := fmt.Fprint(sys.stdout, script)
	return err
}

// completeCommand is what the scripts call: it prints the words that can stand at the place of the last one, a line
// each, with a tab and its help.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words of the command line, up to the one to complete."`
}

// Run is called by kong.
func (c *completeCommand) Run(ctx *kong.Context, sys system) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "=" }) // bash splits --flag=value there
	for _, w := range completions(ctx.Model.Node, words, sys) {
		fmt.Fprintln(sys.stdout, w)
	}
	return nil
}

// completions returns what the last of the words can become.
func completions(node *kong.Node, words []string, sys system) []string {
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	line := walk(node, words)
	var all []string
	if flag, _, ok := strings.Cut(last, "="); ok && strings.HasPrefix(flag, "--") {
		for _, value := range line.values(line.flag(flag), sys) {
			all = append(all, flag+"="+value)
		}
	} else {
		all = line.next(last, sys)
	}
	return slices.DeleteFunc(all, func(w string) bool { return !strings.HasPrefix(w, last) })
}

// commandLine is what the words before the last one are.
type commandLine struct {
	node       *kong.Node
	positional int        // so many arguments are given
	open       *kong.Flag // the last word is a flag that takes a value; nil: it is not
	config     string     // of -c
}

func walk(node *kong.Node, words []string) commandLine {
	l := commandLine{node: node}
	for _, w := range words {
		switch child := l.child(w); {
		case l.open != nil:
			if l.open.Name == "config" {
				l.config = w
			}
			l.open = nil
		case strings.HasPrefix(w, "-") && w != "-":
			name, value, given := strings.Cut(w, "=")
			flag := l.flag(name)
			if flag != nil && flag.Name == "config" && given {
				l.config = value
			}
			if flag != nil && !given && !flag.IsBool() {
				l.open = flag
			}
		case child != nil:
			l.node = child
		default:
			l.positional++
		}
	}
	return l
}

func (l commandLine) child(name string) *kong.Node {
	for _, child := range l.node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flag returns the flag of a word such as -c or --config; nil if there is none.
func (l commandLine) flag(word string) *kong.Flag {
	for _, flag := range slices.Concat(l.node.AllFlags(true)...) {
		if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// next returns the words that can come next, if the last one begins so.
func (l commandLine) next(last string, sys system) (all []string) {
	switch {
	case l.open != nil:
		return l.values(l.open, sys)
	case strings.HasPrefix(last, "-"):
		for _, flag := range slices.Concat(l.node.AllFlags(true)...) {
			all = append(all, "--"+flag.Name+"\t"+firstSentence(flag.Help))
		}
		return all
	case len(l.node.Children) > 0:
		for _, child := range l.node.Children {
			if !child.Hidden {
				all = append(all, child.Name+"\t"+firstSentence(child.Help))
			}
		}
		return all
	case len(l.node.Positional) == 0:
		return nil
	}
	argument := l.node.Positional[min(l.positional, len(l.node.Positional)-1)]
	switch {
	case argument.Enum != "":
		return strings.Split(argument.Enum, ",")
	case slices.Contains([]string{"process", "old", "new"}, argument.Name):
		return l.processes(sys)
	}
	return nil
}

// values returns what a flag can be.
func (l commandLine) values(flag *kong.Flag, sys system) []string {
	switch {
	case flag == nil:
		return nil
	case flag.Name == "process":
		return l.processes(sys)
	case flag.Name == "log-level":
		return []string{"debug", "info", "warn", "error"}
	case flag.Enum != "":
		return strings.Split(flag.Enum, ",")
	default:
		return nil // the shell completes names of files
	}
}

// processes returns the names of the processes of the file, if it can be read. A shell inserts a word as it is, so a
// name that it would read more into is left out.
func (l commandLine) processes(sys system) []string {
	if l.config == "-" {
		return nil
	}
	config, _, err := source{Config: l.config}.read(sys)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(config.Names(), func(name string) bool { return visible.Shell(name) != name })
}

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}
