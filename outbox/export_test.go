package outbox

// OpenFor is how long the oldest transaction has been open.
var OpenFor = openFor
