// Command ordered-dispatcher delivers the rows of PostgreSQL tables in order, with none missing. Its --help lists what
// it can do; package command holds the program.
package main

import "github.com/ordered-dispatcher/ordered-dispatcher/command"

func main() { command.Main() }
