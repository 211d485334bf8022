package exec_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const token = "s3cr3t-of-the-payment-provider-0123456789"

// fold breaks a text into lines of that many letters, as base64, fold and hexdumps do.
func fold(text string, width int) (lines []string) {
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return append(lines, text)
}

// dumps are what a child prints of a text.
func dumps(text string) map[string][]string {
	var spaced []string
	for line := range strings.Lines(strings.Join(fold(hex.EncodeToString([]byte(text)), 32), "\n")) {
		spaced = append(spaced, " "+strings.Join(fold(strings.TrimSpace(line), 2), " ")) // od -An -tx1
	}
	return map[string][]string{
		"base64": fold(base64.StdEncoding.EncodeToString([]byte(text)), 76), "short base64": fold(base64.StdEncoding.EncodeToString([]byte(text)), 20),
		"hex": fold(hex.EncodeToString([]byte(text)), 60), "od": spaced, "fold": fold(text, 10), "narrow": fold(text, 3),
	}
}

// logged are the lines in a log, without their ends.
func logged(log string) string {
	var all strings.Builder
	for _, line := range regexp.MustCompile(`(?m) line=(.*)$`).FindAllStringSubmatch(log, -1) {
		all.WriteString(strings.Trim(line[1], `"`))
	}
	return all.String()
}

// requireNoPart looks for eight letters in a row of the secret: of a dump after what it has in common with another one.
func requireNoPart(t *testing.T, said string, dump, other []string, about string) {
	t.Helper()
	all, others := strings.Join(dump, ""), strings.Join(other, "")
	from := 0
	for all[from] == others[from] {
		from++
	}
	for i := from; i+8 <= len(all); i++ {
		require.NotContains(t, said, all[i:i+8], about)
	}
}

// A secret goes on over the ends of lines. It is hidden, also where the lines come one at a time.
func TestWords_ASecretThatIsFoldedIsHidden(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 1, 2, 13, 29, 46, 54} {
		others := dumps(strings.Repeat("A", before+len(token)))
		for name, lines := range dumps(strings.Repeat("A", before) + token) {
			for _, each := range []int{1, 2, 100} {
				var said bytes.Buffer
				w := exec.NewWords(exec.Config{Env: map[string]string{"TOKEN": token}, Logger: slog.New(slog.NewTextHandler(&said, nil))})
				w.Note("it begins here")
				for i, line := range append(lines, "it ends here") {
					w.Note(line)
					if i%each == 0 {
						require.False(t, w.Flush())
					}
				}
				w.Flush()
				about := fmt.Sprintf("%s, %d letters before it, %d lines at a time", name, before, each)
				requireNoPart(t, logged(said.String()), lines, others[name], about)
				require.Contains(t, said.String(), "it begins here", about)
				require.Contains(t, said.String(), "it ends here", about)
				require.Contains(t, said.String(), "[secret]", about)
				requireNoPart(t, strings.ReplaceAll(w.Tail(), " | ", ""), lines, others[name], about)
				require.Contains(t, w.Tail(), "it ends here", about)
			}
		}
	}
}

// What a line has beside the secret, and the lines around it, stay readable.
func TestWords_OnlyTheSecretOfAFoldedLineIsHidden(t *testing.T) {
	t.Parallel()
	for _, each := range []int{1, 100} {
		var said bytes.Buffer
		w := exec.NewWords(exec.Config{Env: map[string]string{"TOKEN": token}, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		for i, line := range []string{"one", "the token is " + token[:20], token[20:] + " of two", "three", "s3cr3t-o is no secret", "four", "cut: s3cr3t-of-", "five"} {
			w.Note(line)
			if i%each == 0 {
				w.Flush()
			}
		}
		w.Flush()
		for _, line := range []string{"line=one", `line="the token is [secret]`, " of two\"", "line=three", `line="s3cr3t-o is no secret"`, "line=four", `line="cut: [secret]"`, "line=five"} {
			require.Equal(t, 1, strings.Count(said.String(), line), "%d lines at a time: %s in %s", each, line, said.String())
		}
		require.NotContains(t, said.String(), "s3cr3t-of", each)
	}
}

// flushed are the lines that are logged of lines that come one at a time.
func flushed(env map[string]string, lines ...string) (said []string) {
	var log bytes.Buffer
	w := exec.NewWords(exec.Config{Env: env, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, line := range lines {
		w.Note(line)
		w.Flush()
	}
	for _, line := range regexp.MustCompile(`(?m) line=(.*)$`).FindAllStringSubmatch(log.String(), -1) {
		said = append(said, strings.Trim(line[1], `"`))
	}
	return said
}

// Another line after a part of a secret does not bring back what was hidden of it.
func TestWords_WhatWasHiddenIsNotLoggedAfterAnInterruption(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TOKEN": token}
	require.Equal(t, []string{"[secret]", "[secret]", "[secret]", "another thread says this", "and this"},
		flushed(env, token[:9], token[9:18], token[18:27], "another thread says this", "and this"))
	require.Equal(t, []string{"s3cr3", "[secret]", "five"}, flushed(env, "s3cr3", "t-of-the", "five"))
}

// A line may end as a secret begins by chance: the next line stays as it is.
func TestWords_ALineAfterTheBeginningOfASecretIsLoggedOnce(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DSN": "postgres://app:swordfish-9@db/app"}
	require.Equal(t, []string{"connecting to [secret]", "connected", "done"}, flushed(env, "connecting to postgres", "connected", "done"))
}

// Short values are found within a line alone: the ends of lines make them by chance.
func TestWords_AShortValueIsNotLookedForOverTheEndsOfLines(t *testing.T) {
	t.Parallel()
	env := map[string]string{"LEVEL": "info", "LONGEST": "1234567"}
	require.Equal(t, []string{"logged in", "fo: the first", "abc1234", "567"}, flushed(env, "logged in", "fo: the first", "abc1234", "567"))
	require.Equal(t, []string{"abc1234", "[secret]"}, flushed(map[string]string{"TOKEN": "12345678"}, "abc1234", "5678"))
}

// Each line of a value is a secret of its own, so a child may fold that line alone.
func TestWords_AFoldedLineOfASecretOfSeveralLinesIsHidden(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"user: app\npassword: swordfish-of-the-seven-seas\n", `user: app\npassword: swordfish-of-the-seven-seas`} {
		env := map[string]string{"CREDS": value}
		require.Equal(t, []string{"[secret]", "[secret]", "end"}, flushed(env, "password: swordfish-of-", "the-seven-seas", "end"))
		require.Equal(t, []string{"[secret]", "[secret]", "[secret]", "end"}, flushed(env, "password: swo", "rdfish-of-", "the-seven-seas", "end"))
	}
}

// Word wrap breaks a line in place of the spaces between two words, or beside them.
func TestWords_ASecretThatIsWrappedByWordsIsHidden(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PASS": "correct horse  battery staple", "DSN": "host=db user=app password=swordfish99"}
	for _, lines := range [][]string{{"it is correct horse", "battery staple"}, {"it is correct horse ", "battery staple"}, {"it is correct horse", "  battery staple"}, {"it is correct horse  ", "battery staple"}} {
		require.Equal(t, []string{"it is [secret]", "[secret]", "end"}, flushed(env, append(lines, "end")...), lines)
	}
	require.Equal(t, []string{"[secret]", "[secret]", "[secret]", "end"}, flushed(env, "correct horse", "battery", "staple", "end"))
	require.Equal(t, []string{"connecting with [secret]", "[secret]", "end"}, flushed(env, "connecting with host=db user=app", "password=swordfish99", "end"))
	require.Equal(t, []string{"it is [secret]", "battery staples", "end"}, flushed(map[string]string{"PASS": "correct horse battery staple!"}, "it is correct horse", "battery staples", "end"))
}

// Lines that are left out are searched for the beginning of a secret.
func TestWords_ASecretThatBeginsInALineThatIsLeftOutIsHidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, parts := range [][]string{fold(token, 10), fold(base64.StdEncoding.EncodeToString([]byte(token)), 20)} {
			for _, flush := range []int{1, 3} { // how many times the log keeps up
				var log bytes.Buffer
				w := exec.NewWords(exec.Config{Env: map[string]string{"TOKEN": token}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				for i := range 3 {
					for range 100 {
						w.Note("a step")
					}
					w.Note(parts[0])
					if i < flush {
						for w.Flush() {
						}
					}
					time.Sleep(time.Second)
					for _, part := range parts[1:] {
						w.Note(part)
					}
					w.Note("it goes on")
				}
				time.Sleep(time.Second)
				for w.Flush() {
				}
				require.Contains(t, log.String(), "more lines than are logged")
				requireNoPart(t, logged(log.String()), parts, []string{strings.Repeat("~", len(token)*2)}, fmt.Sprint(parts, flush))
				require.Contains(t, log.String(), "it goes on")
			}
		}
	})
}

func TestDeliverBatch_AFoldedSecretIsNotInTheError(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"base64", "od -An -v -tx1", "fold -w 10", "fold -w 3"} {
		s := sinktest.Made(t, exec.New, exec.Config{
			Command: []string{"sh", "-c", `read -r l; printf '%s: %s' 'The token of this child' "$TOKEN" | ` + command + ` >&2; exit 1`},
			Env:     map[string]string{"TOKEN": token}, Logger: slog.New(slog.DiscardHandler),
		}, nil)
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "[secret]", command)
		for _, part := range []string{"payment", "1vLXB", "aXltZW5", "33 74", "67 38", "-pa"} {
			require.NotContains(t, err.Error(), part, command)
		}
	}
}
