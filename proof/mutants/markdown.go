package main

import (
	"fmt"
	"strings"
)

// markdown is the table of docs/reliability.md.
func markdown(mutants []mutant) string {
	var b strings.Builder
	b.WriteString("| mutant | changed in | killed by |\n|---|---|---|\n")
	for _, m := range mutants {
		fmt.Fprintf(&b, "| %s | %s | `%s` in `%s` |\n", m.protection, m.where(), m.test(), strings.TrimPrefix(m.pkg(), "./"))
	}
	return b.String()
}
