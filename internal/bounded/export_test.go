package bounded

// ReadWithin is Read with another bound for a pipe.
var ReadWithin = readWithin
