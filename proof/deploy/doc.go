// Package deploy tests what people install: the packages, the systemd unit, the image, the compose file, the Helm chart
// and the workflows. It has only tests. It is a module of its own: make packaging runs it.
//
//	.goreleaser.yaml ──▶ .deb, .rpm, archive, SBOM, for this machine ──▶ installed in a directory ──▶ run
//	Dockerfile ──▶ its RUN line, in a copy of its context ──▶ the program
//	the chart ──▶ Helm, as a library ──▶ manifests ──▶ kubeconform, with testdata/schemas
//
// Nouns: the release is what goreleaser builds here, once for all tests. The context is what docker build sends.
//
// Invariants: nothing is installed outside a directory of the test. Nothing needs the network, apart from modules that
// are not in Go's cache yet.
//
// Left out: Docker, Kubernetes, macOS, Windows and a running systemd. None of them is there in CI: see docs/install.md.
package deploy
