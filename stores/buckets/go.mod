module github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets

go 1.26.0

require (
	github.com/ordered-dispatcher/ordered-dispatcher v0.0.0
	github.com/ordered-dispatcher/ordered-dispatcher/claimcheck v0.0.0
	github.com/stretchr/testify v1.12.1
	gocloud.dev v0.46.0
)
