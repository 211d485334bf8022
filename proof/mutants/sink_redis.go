package main

// redisMutants switch off what protects the records of Redis.
var redisMutants = []mutant{
	mutate("Redis takes records of a worker that was superseded", "sinks/redis.TestDeliverBatch_WhatComesLateIsRefused",
		text("sinks/redis/append.lua", "epoch and less(ARGV[2], epoch)", "false")),
	mutate("two workers append to Redis under one epoch", "sinks/redis.TestDeliverBatch_AnEpochOfTwoWorkersIsRefused",
		text("sinks/redis/append.lua", "epoch == ARGV[2] and worker ~= ''", "false and worker ~= ''")),
	mutate("a record that comes again is appended to Redis once more", "sinks/redis.TestDeliverBatch_AWindowWhoseAnswerIsLostIsThereOnce",
		text("sinks/redis/append.lua", "kind == 'replay' or sequence and not less(sequence, ARGV[4])", "false")),
	mutate("another record under a number that Redis has counts as delivered", "sinks/redis.TestDeliverBatch_ANumberOfAnotherRecordIsRefused",
		text("sinks/redis/append.lua", "redis.call('LPOS', KEYS[2], ARGV[5])", "true")),
	mutate("the record after one that Redis refuses is appended", "sinks/redis.TestDeliverBatch_NothingIsAppendedAfterARefusal",
		text("sinks/redis/append.lua", "kind == 'chained' and sequence ~= ARGV[6]", "false")),
	mutate("more of a window counts as delivered than Redis has", "sinks/redis.TestDeliverBatch_NothingIsAppendedAfterARefusal",
		code("sinks/redis.Sink.append", "return i, err", "return len(window), err")),
	mutate("what Redis lost of the records that it had acknowledged is passed over", "sinks/redis.TestDeliverBatch_WhatWasRemovedIsSaid",
		text("sinks/redis/append.lua", "lost and not less(lost, ARGV[2])", "false")),
	mutate("a password that Redis repeats is quoted", "sinks/redis.TestGuard_AServerThatRepeatsTheLoginDisclosesNothing",
		code("sinks/redis.New", "secret.New(server.password)", "secret.New()")),
	mutate("Redis may say as much as it likes", "sinks/redis.TestGuard_AServerThatSaysTooMuchIsNotHeardOut",
		code("sinks/redis.replies.follow", "r.total.Add(int64(len(p))) > maxReplies", "false")),
	mutate("short lists of Redis may promise any number of elements together", "sinks/redis.TestGuard_AServerThatSaysTooMuchIsNotHeardOut",
		code("sinks/redis.replies.header", "r.elements.Add(n) > maxElements", "false")),
}
