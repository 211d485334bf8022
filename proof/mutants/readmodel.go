package main

// readModelMutants switch off what protects read models, and the switch between two versions of one.
var readModelMutants = []mutant{
	mutate("a record of a type without a handler is passed over", "readmodel.TestModel_ATypeWithoutAHandlerHaltsEvenWherePoisonIsPutAside",
		code("readmodel.Model.DeliverTx", `return processor.Refused(fmt.Errorf("the read model has no handler for %s: deploy a version that has one, or that ignores them, and `+"`retry`"+`", what))`, "_ = what; return nil")),
	mutate("a record of a type without a handler is put aside", "readmodel.TestModel_ATypeWithoutAHandlerHaltsEvenWherePoisonIsPutAside",
		code("readmodel.Model.DeliverTx", "processor.Refused", "processor.Permanent")),
	mutate("a payload that is not of its type is taken for a fault of the program", "readmodel.TestModel_APoisonRecordAmongOthersIsNamedAndKeepsNothing",
		code("readmodel.On", "processor.Permanent", "processor.Refused")),
	mutate("what a poison record had written stays", "readmodel.TestModel_WhatAPoisonRecordHadWrittenIsUndone",
		code("processor.shift.inTx", "if err := s.lease.Rollback(context.WithoutCancel(s.run)); err != nil { return 0, err }", "")),
	mutate("two versions are compared at different records", "readmodel.TestCompare_OfVersionsThatAreNeverAtTheSameRecordSaysWhereTheyAre",
		code("readmodel.Comparison.meet", "err == nil && wanted(old.Position, recent.Position)", "err == nil")),
	mutate("a comparison waits for a version that is halted", "readmodel.TestCompare_OfAHaltedVersionSaysSoAtOnce",
		code("readmodel.stands", "version.State == cursor.Running", "true")),
	mutate("a comparison may change tables", "readmodel.TestCompare_ShowsWhatDiffersAtOneRecord",
		text("readmodel.beginSQL", "REPEATABLE READ READ ONLY", "REPEATABLE READ")),
	mutate("readers go to a version that is behind", "readmodel.TestSwitch_RefusesAVersionThatIsBehindAndChangesNothing",
		code("cursor/operator.reached", "row.Position >= other.Position", "row.Process != \"\""),
		code("cursor/operator.Operator.switchOver", "s.To.Position < s.From.Position", "false")).inCI(),
	mutate("a version that is halted is waited for", "readmodel.TestSwitch_RefusesAVersionThatIsBehindAndChangesNothing",
		code("cursor/operator.reached", "row.State != cursor.Running", "false")),
	mutate("the change of a switch may commit by itself", "readmodel.TestSwitch_AFailedChangeLeavesReadersWhereTheyAre",
		code("cursor/operator.changed", "before != after", "false")),
	mutate("readers are switched to a version that was paused meanwhile", "readmodel.TestSwitch_RefusesAVersionThatIsPausedMeanwhile",
		code("cursor/operator.Operator.switchOver", "s.To.State != cursor.Running || s.To.Position < s.From.Position", "false")),
}
