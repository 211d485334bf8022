package child

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Program is what a configuration says of a program.
type Program struct {
	// Command is the program and its arguments. A name without a slash is looked up in the PATH of this process. Another
	// one is taken from Dir, unless it is absolute.
	Command []string
	// Dir is the working directory; "" is that of this process.
	Dir string
	// Env has the variables besides those inherited from this process, and replaces variables of the same names.
	Env map[string]string
	// Account is whom the program runs as; nil is the account of this process.
	Account *Account
}

// inherited lists the variables that a program has from this process.
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// Validate returns at once all faults that can be found on any machine, and quotes no value of Env. An empty
// Command is no fault here.
func (p Program) Validate() error {
	var faults knob.Faults
	faults.If(len(p.Command) > 0 && p.Command[0] == "", "command names no program: write the program and its arguments as a list")
	faults.If(slices.ContainsFunc(append(slices.Clone(p.Command), p.Dir), holdsNUL), "command and dir cannot hold a NUL byte")
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		faults.If(name == "" || strings.ContainsAny(name, "=\x00"), "env: %q is not the name of a variable", name)
		faults.If(holdsNUL(p.Env[name]), "env: the value of %q holds a NUL byte", name)
	}
	return errors.Join(faults...)
}

func holdsNUL(text string) bool { return strings.ContainsRune(text, 0) }

// DirFault returns an error if the directory is missing.
func (p Program) DirFault() error {
	if info, err := os.Stat(p.Dir); p.Dir != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("there is no directory %q", p.Dir)
	}
	return nil
}

// CommandFault returns an error if this machine has no such program. It does not look for one whose name begins with
// ".", which may be made in Dir later.
func (p Program) CommandFault() error {
	program := p.Command[0]
	if strings.HasPrefix(program, ".") {
		return nil
	}
	if p.Dir != "" && strings.ContainsRune(program, filepath.Separator) {
		program = p.at(program)
	}
	_, err := exec.LookPath(program)
	return err
}

// Files returns the program and the first of its arguments that is a file. If the program is an interpreter, that file
// is its script.
func (p Program) Files() (all []string) {
	if len(p.Command) == 0 {
		return nil
	}
	program := p.Command[0]
	if !strings.ContainsRune(program, filepath.Separator) {
		program, _ = exec.LookPath(program)
	}
	if program != "" {
		all = append(all, p.at(program))
	}
	for _, argument := range p.Command[1:] {
		if info, err := os.Stat(p.at(argument)); err == nil && info.Mode().IsRegular() {
			return append(all, p.at(argument))
		}
	}
	return all
}

// at returns a path as the program sees it.
func (p Program) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.Dir, path)
}

// environment returns the program's whole environment.
func (p Program) environment() []string {
	all := map[string]string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			all[name] = value
		}
	}
	p.Account.introduce(all)
	maps.Copy(all, p.Env)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+"="+all[name])
	}
	return lines
}
