package command

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
)

// help prints kong's help with a usage line of ours, in which alternatives are shown as alternatives.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	out := ctx.Stdout
	var b bytes.Buffer
	ctx.Stdout = &b
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Stdout = out
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(b.String(), "\n")
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	_, err = fmt.Fprintf(out, "%s\n%s", fold.Text("Usage: "+usage(node), screen.DefaultWidth, "         "), rest)
	return err
}

// alternatives is a command that shows in its usage line itself what it takes besides flags.
type alternatives interface{ alternatives() string }

// usage returns the usage line of a command. Each group of flags that exclude each other is one part of it.
func usage(node *kong.Node) string {
	parts := []string{node.FullPath()}
	flags, others := required(node)
	if given, ok := own(node); ok {
		parts = append(parts, given)
	} else {
		parts = append(parts, flags...)
		for _, argument := range node.Positional {
			parts = append(parts, argument.Summary())
		}
	}
	if len(node.Children) > 0 {
		parts = append(parts, "<command>")
	}
	if others {
		parts = append(parts, "[flags]")
	}
	return strings.Join(parts, " ")
}

// own returns what a command says itself about what it takes.
func own(node *kong.Node) (string, bool) {
	if !node.Target.IsValid() || !node.Target.CanAddr() {
		return "", false
	}
	c, ok := node.Target.Addr().Interface().(alternatives)
	if !ok {
		return "", false
	}
	return c.alternatives(), true
}

// required returns the flags that must be given, and the groups of flags of which at most one can be given. others
// reports whether there are more.
func required(node *kong.Node) (parts []string, others bool) {
	var groups []string
	members, needed := map[string][]string{}, map[string]bool{}
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		switch {
		case len(flag.Xor) > 0:
			group := flag.Xor[0]
			if !slices.Contains(groups, group) {
				groups = append(groups, group)
			}
			members[group] = append(members[group], flag.Summary())
			needed[group] = needed[group] || flag.Required
		case flag.Required:
			parts = append(parts, flag.Summary())
		case flag.Name != "help":
			others = true
		}
	}
	for _, group := range groups {
		brackets := "[%s]"
		if needed[group] {
			brackets = "(%s)"
		}
		parts = append(parts, fmt.Sprintf(brackets, strings.Join(members[group], " | ")))
	}
	return parts, others
}

// wrong returns the exit code after a command line that cannot be parsed. Without a command, or with a group of
// commands alone, the answer is its help.
func wrong(parser *kong.Kong, args []string, sys system, err error) int {
	node := parser.Model.Node
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		node = parse.Context.Selected()
	}
	path := append([]string{parser.Model.Name}, args...)
	if len(node.Children) > 0 && strings.Join(path, " ") == node.FullPath() {
		parser.Stdout, parser.Exit = sys.stderr, func(int) {}
		_, _ = parser.Parse(append(slices.Clone(args), "--help")) // it prints the help, and then has the same error
		return daemon.ExitUsage
	}
	return report(sys, &daemon.UsageError{Err: fmt.Errorf("%w; see `%s --help`", err, node.FullPath())})
}
