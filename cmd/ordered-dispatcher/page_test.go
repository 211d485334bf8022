package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// page is a document whose blocks of code a test carries out, one after the other, in a directory of its own.
//
//   - A block of "sh" is run by bash, and must succeed. If its first line is "# terminal N", it goes on in the background.
//   - A block of "text" is what the commands before it print. "…" in it stands for anything in the line.
//   - A block whose first line is a comment with the name of a file is that file.
//   - A block of "sql" is run by psql, and one of "yaml" is a configuration that the program accepts.
type page struct {
	t       testing.TB
	dir     string
	env     []string
	replace *strings.Replacer
	printed *output
	seen    int // lines of printed that an earlier block of text has had
	blocks  []pageBlock
	others  map[string]func() // what is done instead of a block, by its text
}

type pageBlock struct{ heading, language, text string }

var (
	fence        = regexp.MustCompile("(?ms)^## ([^\n]*)$|^```(\\w+)[^\n]*\n(.*?)^```$")
	fileName     = regexp.MustCompile(`\A(?:#|--|//) ([\w.-]+\.\w+)\n`)
	terminalLine = regexp.MustCompile(`\A# terminal (\d)\n`)
)

// openPage reads a document. The pairs replace what differs in the test, such as ports: each must be in the document.
func openPage(t testing.TB, path, database string, pairs ...string) *page {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, string(text), pairs[i])
	}
	p := &page{t: t, dir: t.TempDir(), replace: strings.NewReplacer(pairs...), printed: newOutput()}
	p.env = []string{"HOME=" + p.dir, "PATH=" + filepath.Dir(binary) + ":" + filepath.Dir(pgtest.Require(t, "psql")) + ":" + os.Getenv("PATH"),
		"DATABASE_URL=" + database}
	heading := ""
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			heading = m[1]
			continue
		}
		p.blocks = append(p.blocks, pageBlock{heading, m[2], p.replace.Replace(m[3])})
	}
	return p
}

// instead has a block carried out by other means: it needs a program that is not for tests.
func (p *page) instead(block string, do func()) {
	if p.others == nil {
		p.others = map[string]func(){}
	}
	p.others[block] = do
}

// headings are those that have blocks.
func (p *page) headings() []string {
	var all []string
	for _, b := range p.blocks {
		all = append(all, b.heading)
	}
	return slices.Compact(all)
}

// carryOut carries out the blocks below a heading, in order.
func (p *page) carryOut(heading string) {
	p.t.Helper()
	found := false
	for _, b := range p.blocks {
		if b.heading != heading {
			continue
		}
		found = true
		switch {
		case p.others[b.text] != nil:
			p.others[b.text]()
		case fileName.MatchString(b.text):
			p.save(fileName.FindStringSubmatch(b.text)[1], b.text)
		case b.language == "sh" && terminalLine.MatchString(b.text):
			p.background(b.text)
		case b.language == "sh":
			p.run(b.text)
		case b.language == "text":
			p.expect(b.text)
		case b.language == "sql":
			p.save("block.sql", b.text)
			p.run(`psql -v ON_ERROR_STOP=1 "$DATABASE_URL" -f block.sql`)
		case b.language == "yaml":
			p.save("block.yaml", b.text)
			p.run("ordered-dispatcher check -c block.yaml")
		default:
			require.Fail(p.t, "a block of "+b.language+" has no test", b.text)
		}
	}
	require.True(p.t, found, "no block below %q", heading)
}

func (p *page) bash(script string) *exec.Cmd {
	cmd := exec.Command(pgtest.Require(p.t, "bash"), "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a block to its end. Exit code 3 is a halt, of which a page may show the status.
func (p *page) run(script string) {
	p.t.Helper()
	const halted = 3
	cmd := p.bash(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.Equal(p.t, halted, cmd.ProcessState.ExitCode(), "%s\n%s\n%v", script, out, err)
		require.Contains(p.t, script, "ordered-dispatcher status", "%s", out)
	}
	p.printed.read(strings.NewReader(string(out)))
}

// background runs a block until the end of the test, as in a terminal of its own.
func (p *page) background(script string) {
	p.t.Helper()
	cmd := p.bash(script)
	read, write, err := os.Pipe()
	require.NoError(p.t, err)
	cmd.Stdout, cmd.Stderr = write, write
	require.NoError(p.t, cmd.Start())
	require.NoError(p.t, write.Close())
	done := make(chan struct{})
	go func() { p.printed.read(read); close(done) }()
	p.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		<-done
		_ = read.Close()
	})
}

// expect waits for each line of a block, in order, among what was printed since the lines of the block before it.
func (p *page) expect(text string) {
	p.t.Helper()
	for line := range strings.Lines(text) {
		pattern := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, "\n")), "…", ".*") + `$`)
		require.Eventually(p.t, func() bool {
			p.printed.mu.Lock()
			defer p.printed.mu.Unlock()
			for i, printed := range p.printed.lines[p.seen:] {
				if pattern.MatchString(printed) {
					p.seen += i + 1
					return true
				}
			}
			return false
		}, patience, tick, "nothing printed %q", line)
	}
}

func (p *page) save(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
}
