package main

// newcomerMutants take away what keeps an operator from doing harm on a bad day.
var newcomerMutants = []mutant{
	{
		"status names the dispatcher's own sessions as writers",
		[]change{{"internal/daemon/status.go", `return w.Ours && !slices`, `return w.Ours && w.PID < 0 && !slices`}},
		daemonPkg, "TestStatus_NeverNamesAWorkerAsAWriter",
	},
}
