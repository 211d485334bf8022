package main

// daemonMutants take away what protects the daemon.
var daemonMutants = []mutant{
	{
		"errors show what a reference stands for",
		[]change{{"internal/daemon/yamlfile/node.go", `	if n.refers() {`, `	if false {`}},
		daemonPkg, "TestParse_ShowsNotWhatAReferenceStandsFor",
	},
	{
		"digests in the audit have no salt",
		[]change{{"internal/daemon/configured.go", `hmac.New(sha256.New, []byte(salt))`, `hmac.New(sha256.New, nil)`}},
		daemonPkg, "TestDrain_SaltsTheDigestOfWhatMayBeSecret",
	},
}
