package history

// Kind of a fault.
type Kind string

// The faults. Those of a worker are its operating system process and its link to the database; those of a process are
// the answers of its receiver, its links to it, and its row.
const (
	Kill      Kind = "SIGKILL"
	Stop      Kind = "SIGSTOP, SIGCONT"
	Terminate Kind = "SIGTERM"

	CutDatabase        Kind = "database link cut"
	StallDatabase      Kind = "database link stalled"
	TearToDatabase     Kind = "message to the database torn"
	TearFromDatabase   Kind = "message from the database torn"
	StrandCommand      Kind = "checkpoint torn, its session left for dead"
	TerminateBackend   Kind = "pg_terminate_backend"
	Crash              Kind = "pg_ctl stop -m immediate, start"
	Promote            Kind = "primary crashed, standby promoted"
	StealLock          Kind = "cursor row locked by a stranger"
	LockSinkTable      Kind = "table of the sql sink locked"
	CutReceiver        Kind = "receiver link cut"
	StallReceiver      Kind = "receiver link stalled"
	TearToReceiver     Kind = "request torn"
	TearFromReceiver   Kind = "answer torn"
	KillBroker         Kind = "SIGKILL of the broker"
	KillNATS           Kind = "SIGKILL of the NATS server"
	AnswerLate         Kind = "applied, answered after the time-out"
	AnswerNever        Kind = "applied, never answered"
	AnswerMute         Kind = "not applied, never answered"
	AnswerError        Kind = "500, not applied"
	AnswerLie          Kind = "500, applied"
	AnswerBusy         Kind = "429 with Retry-After"
	AnswerReset        Kind = "applied, connection reset"
	AnswerPoison       Kind = "422; an operator retries"
	AnswerRedirect     Kind = "redirect; an operator retries"
	AnswerUnnoticed    Kind = "422; nobody decides for a while"
	AnswerAside        Kind = "422; put aside as a dead letter"
	OperatorReplay     Kind = "422; put aside, an operator replays"
	Outage             Kind = "503 for a while"
	OperatorSkip       Kind = "422; an operator skips"
	OperatorPause      Kind = "an operator pauses and resumes"
	OperatorBack       Kind = "an operator seeks back"
	OperatorForward    Kind = "an operator seeks forward"
	AnswerRefusesUs    Kind = "401, 403, 404 … for a while; an operator retries"
	OperatorsSkip      Kind = "422; two operators skip at once"
	OperatorsDiffer    Kind = "422; an operator skips, another retries"
	OperatorsSeek      Kind = "two operators seek at once"
	OperatorsReplay    Kind = "422; put aside, two operators replay or discard at once"
	OperatorsReplayAll Kind = "422; put aside, two operators replay all there is at once"
	OperatorUncertain  Kind = "422; an operator skips, and the COMMIT is not answered"
	LongProducer       Kind = "producer open for seconds"
	ForgottenPrepared  Kind = "prepared transaction left for seconds"
	RoleSettings       Kind = "settings of the roles changed"
	KeptAdvance        Kind = "cursor row kept by a trigger"
	LockLetters        Kind = "table of the dead letters locked by a stranger"
	LockEvents         Kind = "table of the audit locked by a stranger"
	TargetRefuses      Kind = "23514 of another database; put aside, operators replay"
)

// Overload is a second in which the machine was so busy that time-outs ran out by themselves. No plan has it: the
// metronome shows it.
const Overload Kind = "the machine too busy, by itself"

// Kinds are those that a plan may have, in the order of a report.
func Kinds() []Kind {
	return []Kind{
		Kill, Stop, Terminate,
		CutDatabase, StallDatabase, TearToDatabase, TearFromDatabase, StrandCommand, TerminateBackend, Crash, Promote, StealLock, LockSinkTable,
		CutReceiver, StallReceiver, TearToReceiver, TearFromReceiver, KillBroker, KillNATS,
		AnswerLate, AnswerNever, AnswerMute, AnswerError, AnswerLie, AnswerBusy, AnswerReset, AnswerPoison, AnswerRedirect,
		AnswerUnnoticed, AnswerAside, OperatorReplay, Outage, AnswerRefusesUs,
		OperatorSkip, OperatorPause, OperatorBack, OperatorForward,
		OperatorsSkip, OperatorsDiffer, OperatorsSeek, OperatorsReplay, OperatorsReplayAll, OperatorUncertain,
		LongProducer, ForgottenPrepared,
		RoleSettings, KeptAdvance, LockLetters, LockEvents, TargetRefuses,
	}
}
