package main

// proveMutants switch off what protects those who move to us from another way.
var proveMutants = []mutant{
	mutate("a fence that is not known counts as one", "sources/table.TestFence_OfAFirstQuestionBesideAWriterIsUnknown",
		code("sources/table.layout.fencePosition", "bound == unbounded", "false")),
	mutate("adopt asks for the fence after it has looked at the rows", "command/internal/prove.TestAdopt_AsksForTheFenceBeforeItLooks",
		code("command/internal/prove.move.place", "limit := m.bound.Before", "if err := m.askFence(ctx); err != nil { return err }; limit := m.bound.Before")).inCI(),
	mutate("prove asks for the fence after the snapshot", "command/internal/prove.TestProve_AsksForTheFenceBeforeItLooks",
		code("command/internal/prove.prover.look", "bound, err := p.source.Fence(ctx)", "var err error"),
		code("command/internal/prove.prover.look", "if bound.Holder != \"\" { writers, err := p.source.Writers(ctx); if err != nil { return err }; p.fence.name(bound.Holder, writers, look.Clock) }",
			"bound, err := p.source.Fence(ctx); if err != nil { return err }")),
	mutate("adopt begins after the last row, past the fence", "command/internal/prove.TestAdopt_NeverGoesPastATransactionThatIsOpen",
		code("command/internal/prove.move.place", "m.source.Back(ctx, limit, 1)", "m.source.Tail(ctx, 0)")),
	mutate("adopt begins while the loop still runs", "command/internal/prove.TestAdopt_SeesThatTheLoopRuns",
		code("command/internal/prove.move.running", "marked == 0", "marked >= 0")),
	mutate("adopt takes what is not confirmed to a slot for delivered", "command/internal/prove.TestAdopt_OfASlotProvesWhatWasConfirmed",
		text("command/internal/prove.slotSQL", ">= $3::pg_lsn, false)", "IS NOT NULL OR $3::pg_lsn IS NULL, false)")),
	mutate("adopt takes a transaction that a slot still needs for delivered", "command/internal/prove.TestAdopt_OfASlotProvesWhatWasConfirmed",
		text("command/internal/prove.endedBefore", "age(xmin) > age", "age(xmin) >= age")),
	mutate("adopt takes records that Sequin holds for delivered", "command/internal/prove.TestAdopt_OfASlotProvesWhatWasConfirmed",
		code("command/internal/prove.heldBySequin", "held > 0", "false")),
	mutate("the reader that prove calls ours does not stop at the fence", "command/internal/prove.TestProve_ALateCommitIsLostByTheLoopsAndNotByOurs",
		code("command/internal/prove.judge.take", "r.Position < b.Before", `b.Before != ""`)),
	mutate("prove does not look for what ours has lost", "command/internal/prove.TestProve_TheLastPassFindsWhatNoLookShows",
		code("command/internal/prove.prover.finish", "p.judge.sweep(look.Records)", "")),
}
