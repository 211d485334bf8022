package main

// notifyMutants switch off what makes one message of an alarm, and none that is wrong.
var notifyMutants = []mutant{
	mutate("two workers tell a target of one alarm at once", "command/internal/daemon.TestNotify_NoOtherWorkerTellsWhileOneDoes",
		text("command/internal/daemon.claimAlarmsSQL", "AND a.claimed_until < clock_timestamp()", "")).inCI(),
	mutate("a worker tells of what another one has told since it looked", "command/internal/daemon.TestNotify_NoOtherWorkerTellsWhatWasToldSinceItLooked",
		text("command/internal/daemon.claimAlarmsSQL", "a.messages = excluded.messages AND", "")),
	mutate("an alarm that was told is told at each look", "command/internal/daemon.TestNotify_WorkersThatLookAtOnceSendOneMessage",
		code("command/internal/daemon.told.due", "s.present && !raised", "s.present")),
	mutate("a recovery is told without an alarm", "command/internal/daemon.TestNotify_NoRecoveryWithoutAnAlarm",
		code("command/internal/daemon.told.due", "!s.present && raised && !t.gone.IsZero()", "!s.present")),
	mutate("a cause that comes and goes makes a message each time", "command/internal/daemon.TestNotify_FlappingIsDamped",
		code("command/internal/daemon.told.settle", "min(first<<min(t.flaps, maxFlaps), maxSettle)", "0*first")),
	mutate("a child of a target goes on after its time", "command/internal/notify.TestExec_EndsInTimeWithItsChildren",
		code("internal/child.ownGroup", "Setsid: true", "Setpgid: false")),
	mutate("an e-mail goes out in the clear where its server cannot encrypt", "command/internal/notify.TestSMTP_SendsNothingWithoutTheEncryptionThatIsAskedFor",
		code("command/internal/notify.mailer.client", "gomail.TLSMandatory", "gomail.TLSOpportunistic")),
}
