package main

// operatorMutants take away what protects those who operate a daemon.
var operatorMutants = []mutant{
	{
		"SIGHUP ends a worker without its grace",
		[]change{{"cmd/ordered-dispatcher/run.go", `	if !signal.Ignored(syscall.SIGHUP) {`, `	if false {`}},
		commandPkg, "TestSIGHUP_LetsTheSlowCallFinish",
	},
	{
		"SIGHUP ends a worker under nohup",
		[]change{{"cmd/ordered-dispatcher/run.go", `	if !signal.Ignored(syscall.SIGHUP) {`, `	if true {`}},
		commandPkg, "TestSIGHUP_IsIgnoredUnderNohup",
	},
}
