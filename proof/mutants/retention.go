package main

// retentionMutants switch off what protects the rows that retention and erase take away. More are in daemonMutants.
var retentionMutants = []mutant{
	mutate("retention removes rows that are younger than keep", "command/internal/daemon.TestPrune_RemovesWhatEveryCursorHasPassedAndWhatIsOld",
		text("sources/table.Pruning.old", "%[1]s < %s - $%d::interval", "(%[1]s < %s - $%d::interval) IS NOT NULL")),
	mutate("a seek goes back to records that retention has removed without a word", "command/internal/daemon.TestSeek_BackToRemovedRowsSaysSo",
		code("cursor/operator.lacks", "to < p.Through", "to < \"\"")),
	mutate("a process that halts over its database meanwhile holds no row back", "command/internal/daemon.TestPrune_RefusesWhatHappensToCursorsMeanwhile",
		code("retention.pass.settle", "reads && failure.OfServer()", "reads && failure.OfServer() && false")),
	mutate("a cursor that appears meanwhile holds no row back", "command/internal/daemon.TestPrune_RefusesWhatHappensToCursorsMeanwhile",
		code("retention.pass.settle", "!reads && !slices.Contains(p.Others, s.Process)", "!reads && !slices.Contains(p.Others, s.Process) && false")),
	mutate("an archive that drops rows loses them", "command/internal/daemon.TestPrune_AnArchiveThatDropsRowsKeepsThem",
		code("sources/table.Pruning.Archive", "string(removed.Contents[0]) != strconv.FormatInt(removed.Rows, 10)", "strconv.FormatInt(removed.Rows, 10) == \"\"")),
	mutate("a removal waits for a lock while deliveries wait for it", "command/internal/daemon.TestPrune_ALockOfAnotherSessionIsNotWaitedFor",
		text("cursor/operator.pruneSettingsSQL", "set_config('lock_timeout', '100ms', true)", "set_config('lock_timeout', '1min', true)")),
	mutate("erase passes over rows that are not delivered, without a word", "command/internal/daemon.TestErase_DeletesOrBlanksDeliveredRowsOfAKeyAndNotesIt",
		code("sources/table.Pruning.Erase", "if err := p.delivered(ctx, tx, by, e.Key); err != nil { return Erased{}, err }", "_ = p.delivered")),
	mutate("erase passes over rows of a partition that is detached and not dropped", "command/internal/daemon.TestErase_RefusesWhileRowsMayBeInAPartitionOnItsWay",
		code("sources/table.Pruning.allRead", "len(unread) == 0", "len(unread) >= 0")),
	mutate("erase leaves an open dead letter of the key", "command/internal/daemon.TestErase_RefusesWhileADeadLetterOfTheKeyIsOpen",
		code("cursor/operator.Operator.EraseLetters", "open > 0", "false")),
	mutate("erase leaves no trace in the audit", "command/internal/daemon.TestErase_DeletesOrBlanksDeliveredRowsOfAKeyAndNotesIt",
		text("cursor/operator.noteErasedSQL", "FROM unnest($1::text[]) process (name)", "FROM unnest($1::text[]) process (name) WHERE name IS NULL"),
		code("cursor/operator.Operator.NoteErased", "tag.RowsAffected() != int64(len(processes))", "tag.RowsAffected() < 0")),
}
