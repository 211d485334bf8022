package main

// daemonMutants take away what protects the daemon.
var daemonMutants = []mutant{
	{
		"two processes whose fences of NATS are one template are taken for two fences",
		[]change{{"sinks/nats/spec.go", `if c.Fence == "" {`, `if c.Fence == "" || c.Fence[len(c.Fence)-1] == '}' {`}},
		daemonPkg, "TestParse_RefusesTwoProcessesOnWhatBelongsToOne",
	},
	{
		"two processes may have one fence or transactional id",
		[]change{{"command/internal/daemon/sink.go", `if owner, taken := owners[what]; taken {`, `if owner, taken := owners[what]; taken && false {`}},
		daemonPkg, "TestParse_RefusesTwoProcessesOnWhatBelongsToOne",
	},
	{
		"errors show what a reference stands for",
		[]change{{"command/internal/daemon/yamlfile/node.go", `	if n.refers() {`, `	if false {`}},
		daemonPkg, "TestParse_ShowsNotWhatAReferenceStandsFor",
	},
	{
		"digests in the audit have no salt",
		[]change{{"command/internal/daemon/configured.go", `hmac.New(sha256.New, []byte(salt))`, `hmac.New(sha256.New, nil)`}},
		daemonPkg, "TestDrain_SaltsTheDigestOfWhatMayBeSecret",
	},
	{
		"status has no word on what a call keeps vacuum from",
		[]change{{"command/internal/daemon/status_hold.go", `visible.Line(s.Holder), pinned(s.bounds))}`, `visible.Line(s.Holder), pinned(leaseBounds{}))}`}},
		daemonPkg, "TestStatus_SaysWhatACallKeepsVacuumFrom",
	},
	{
		"the doctor has no word on a lease that may be open for long",
		[]change{{"command/internal/daemon/pinned.go", `	if bounds.open > longBound {`, `	if bounds.open > 1000*longBound {`}},
		daemonPkg, "TestDoctor_NamesALeaseThatMayBeOpenForLong",
	},
	{
		"an open lease is not measured",
		[]change{{"command/internal/daemon/metrics/lease.go", `	if since := l.since.Load(); since != 0 {
		open =`, `	if since := l.since.Load(); since < 0 {
		open =`}},
		daemonPkg, "TestMetrics_ShowALeaseThatIsOpenAndWhoLeads",
	},
	{
		"every worker says that it leads",
		[]change{{"command/internal/daemon/look.go", `	if row.Holder == l.store.Worker() {`, `	if row.Holder != "" {`}},
		daemonPkg, "TestMetrics_ShowALeaseThatIsOpenAndWhoLeads",
	},
	{
		"a lease is bounded by one call, however many lie between two checkpoints",
		[]change{{"processor/lease.go", `	if d := p.config.Dispatch; !d.batch {
		return d.chunk(p.config)
	}
`, ``}},
		processorPkg, "TestMaxLease_IsThatOfTheCallsBetweenTwoCheckpoints",
	},
	{
		"a call of a child may last for an hour, whatever its time-out",
		[]change{{"sinks/exec/spec.go", `max(env.Checkpoint, 1)), sinks.MaxTimeout))`, `max(env.Checkpoint, 1)*9999), sinks.MaxTimeout))`}},
		daemonPkg, "TestMaxLease_OfExecIsThatOfItsRecords",
	},
	{
		"a call of a window is cut after 30 s, whatever its time-out",
		[]change{{"sinks/spec.go", `return max(CallTimeout(timeout), least)`, `return least`}},
		daemonPkg, "TestMaxLease_FollowsTheTimeoutOfEachKindOfSink",
	},
}
