// Package command is the program ordered-dispatcher: its command line, its configuration file and its daemon. It is
// public so that you can build the program again with sinks of your own: write a main function that calls Main, as
// examples/own-sink does, or Program.Main with object stores.
//
//	os.Args ──▶ Main ──▶ one command ──▶ package daemon ──▶ cursor, processor, sources, sinks
//	                          │
//	                          └──▶ exit code: 0 done, 1 failed, 2 wrong use, 3 a process is halted
//
// Invariants:
//
//   - Standard output belongs to what a command was asked for, and to the stdout sink. Logs and errors go to standard
//     error.
//   - Nothing that is printed holds a secret of the configuration, even if a server repeats it.
//   - A command parses its arguments and prints. What it does is in package daemon.
//
// A new command is a struct with a Run method in a file of its name, one line in cli.go, and what it does in package
// daemon.
//
// Left out: PostgreSQL servers of its own. The demo, which starts one, is proof/demo.
package command
