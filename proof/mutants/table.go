package main

import "slices"

// Packages of the killers.
const (
	cursorPkg     = "./cursor"
	answerPkg     = "./internal/answer"
	processorPkg  = "./processor"
	tablePkg      = "./sources/table"
	webhookPkg    = "./sinks/webhook"
	sqlPkg        = "./sinks/sql"
	pubsubPkg     = "./sinks/pubsub"
	natsPkg       = "./sinks/nats"
	rabbitmqPkg   = "./sinks/rabbitmq"
	kafkaPkg      = "./sinks/kafka"
	execPkg       = "./sinks/exec"
	stdoutPkg     = "./sinks/stdout"
	watermillPkg  = "./sinks/watermill"
	migrationsPkg = "./migrations"
	daemonPkg     = "./command/internal/daemon"
	yamlPkg       = "./command/internal/daemon/yamlfile"
	commandPkg    = "./cmd/ordered-dispatcher"
	pgurlPkg      = "./internal/pgurl"
	visiblePkg    = "./internal/visible"
	withpgPkg     = "./internal/pgtest/withpg"
	throwawayPkg  = "./internal/pglocal/throwaway"
	pgwallPkg     = "./internal/pgwall"
	boundedPkg    = "./internal/bounded"
	secretPkg     = "./internal/secret"
	servicesPkg   = "./proof/services"
)

// table are the mutants, by the room that they weaken.
var table = slices.Concat(cursorMutants, historyMutants, processorMutants, sourceMutants, sinkMutants, natsMutants, kafkaMutants, sqlMutants, daemonMutants, operatorMutants, readingMutants, deadlineMutants, wallMutants, newcomerMutants, memoryMutants, boundMutants, nameMutants, answerMutants, credentialMutants, outcomeMutants, serverMutants, renewalMutants, diagnosisMutants, lossMutants)
