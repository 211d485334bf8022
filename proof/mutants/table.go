package main

import "slices"

// table are the mutants, by what they weaken.
var table = slices.Concat(cursorMutants, historyMutants, processorMutants, sourceMutants, sinksMutants, kafkaMutants, natsMutants, redisMutants, sqlMutants, producerMutants, receiverMutants, readModelMutants, daemonMutants, consoleMutants, retentionMutants, wallsMutants)

// among returns the mutants of the table; of CI alone, if that is asked for.
func among(ci bool) []mutant {
	if !ci {
		return table
	}
	return slices.DeleteFunc(slices.Clone(table), func(m mutant) bool { return !m.ci })
}
