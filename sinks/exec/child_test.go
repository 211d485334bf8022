package exec_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The children of these tests are this test binary, run again: CHILD says which.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD") == "" {
		os.Exit(m.Run())
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			fmt.Fprintln(os.Stderr, "no JSON:", err)
			os.Exit(1)
		}
		behave(os.Getenv("CHILD"), n, l)
	}
}

// line is what these children read of a record.
type line struct {
	Type     string          `json:"type"`
	Attempt  int             `json:"attempt"`
	Payload  json.RawMessage `json:"payload"`
	DedupKey string          `json:"dedup_key"`
}

// exists reports whether a test has put a file into the child's directory.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// behave deals with the nth line of a child.
func behave(how string, n int, l line) {
	switch {
	case how == "journal" && exists("silence"), how == "hangs" && n == 2:
		hang()
	case how == "journal" && exists("refuse") && l.Type == "refused":
		say(l, `"error": "not that type", "permanent": true`)
		return
	case how == "journal" && exists("lose"):
		journal(l)
		os.Exit(0)
	case how == "dies" && n == 2:
		fmt.Fprintln(os.Stderr, "cannot go on with", string(l.Payload), "and", os.Getenv("TOKEN"))
		os.Exit(3)
	case how == "ends between" && n == 2:
		journal(l)
		say(l, `"ok": true`)
		os.Exit(0)
	case how == "swaps" && n == 2:
		say(line{DedupKey: "another", Attempt: l.Attempt}, `"ok": true`)
		say(l, `"ok": true`)
		return
	case how == "twice":
		say(l, `"ok": true`)
	case how == "takes back" && n == 2:
		journal(l)
		say(l, `"error": "no stock"`)
		say(l, `"ok": true`) // the "finally" of a careless program
		return
	case how == "other attempt" && n == 2:
		say(line{DedupKey: l.DedupKey, Attempt: l.Attempt - 1}, `"ok": true`)
		return
	case how == "chats":
		fmt.Println("dealt with", l.DedupKey)
		return
	case how == "floods":
		fmt.Println(strings.Repeat("x", 1<<20))
		return
	case how == "says":
		say(l, os.Getenv("SAYS"))
		return
	case how == "grandchild":
		command := exec.Command("sleep", "600")
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		_ = command.Start()
		_ = os.WriteFile("child.pid", fmt.Append(nil, os.Getpid()), 0o600)
		_ = os.WriteFile("grandchild.pid", fmt.Append(nil, command.Process.Pid), 0o600)
		hang()
	case how == "leaves an heir" && string(l.Payload) != `"alone"`:
		heir := exec.Command("sh", "-c", "trap '' PIPE; while echo x >&2; do sleep 0.1; done; touch closed; sleep 600")
		heir.Stdin, heir.Stdout, heir.Stderr = os.Stdin, os.Stdout, os.Stderr
		heir.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = heir.Start()
		_ = os.WriteFile("heir.pid", fmt.Append(nil, heir.Process.Pid), 0o600)
		os.Exit(3)
	case how == "environment":
		text, _ := json.Marshal(os.Environ())
		_ = os.WriteFile("environment", text, 0o600)
	case how == "stat":
		text, _ := os.ReadFile("/proc/self/stat")
		_ = os.WriteFile("stat", text, 0o600)
	case how == "drones":
		for i := range 3000 {
			fmt.Fprintf(os.Stderr, "step %c of the work is done as it is to be, for customer-77\n", 'a'+i%26)
		}
	case how == "talks":
		for i := range 1000 {
			fmt.Fprintln(os.Stderr, i, strings.Repeat("y", 5000))
		}
	}
	journal(l)
	say(l, `"ok": true`)
}

func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func say(l line, rest string) {
	key, _ := json.Marshal(l.DedupKey)
	fmt.Printf("{\"dedup_key\": %s, \"attempt\": %d, %s}\n", key, l.Attempt, rest)
}

// journal keeps what a child has, in its order.
func journal(l line) {
	file, err := os.OpenFile("journal", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	text, _ := json.Marshal([]string{l.DedupKey, string(l.Payload)})
	if _, err := file.Write(append(text, '\n')); err != nil {
		panic(err)
	}
}
