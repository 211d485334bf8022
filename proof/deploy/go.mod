// The tests of what people install: packages, images, the chart. Apart from proof/go.mod and go.work, because Helm,
// BuildKit and kubeconform require much that nothing else here needs.
module github.com/ordered-dispatcher/ordered-dispatcher/proof/deploy

go 1.26.8

require sigs.k8s.io/yaml v1.6.0

require (
	github.com/compose-spec/compose-go/v2 v2.16.2 // indirect
	github.com/moby/buildkit v0.34.2 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/yannh/kubeconform v0.8.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	helm.sh/helm/v4 v4.3.1 // indirect
	k8s.io/kubectl v0.37.2 // indirect
)
