// Command vendorschemas writes the JSON schemas in testdata/schemas, with which the tests check what the chart makes.
// It needs two files, which it does not fetch:
//
//	vendorschemas -swagger swagger.json -monitor monitoring.coreos.com_servicemonitors.yaml -into testdata/schemas
//
// swagger.json is api/openapi-spec/swagger.json of Kubernetes. The other file is in example/prometheus-operator-crd of
// the Prometheus operator.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kinds are the definitions of what the chart makes, by the name of the file for each.
var kinds = map[string]string{
	"configmap-v1.json":                  "io.k8s.api.core.v1.ConfigMap",
	"deployment-apps-v1.json":            "io.k8s.api.apps.v1.Deployment",
	"job-batch-v1.json":                  "io.k8s.api.batch.v1.Job",
	"poddisruptionbudget-policy-v1.json": "io.k8s.api.policy.v1.PodDisruptionBudget",
	"service-v1.json":                    "io.k8s.api.core.v1.Service",
	"serviceaccount-v1.json":             "io.k8s.api.core.v1.ServiceAccount",
}

const prefix = "#/definitions/"

type object = map[string]any

func main() {
	swagger := flag.String("swagger", "", "the OpenAPI description of Kubernetes")
	monitor := flag.String("monitor", "", "the CustomResourceDefinition of ServiceMonitor")
	into := flag.String("into", "testdata/schemas", "the directory for the schemas")
	flag.Parse()
	log.SetFlags(0)
	if err := run(*swagger, *monitor, *into); err != nil {
		log.Fatal(err)
	}
}

func run(swagger, monitor, into string) error {
	var api struct{ Definitions object }
	if err := read(swagger, &api); err != nil {
		return err
	}
	for file, kind := range kinds {
		definitions := object{}
		collect(api.Definitions, kind, definitions)
		root := definitions[kind].(object)
		delete(definitions, kind)
		schema := maps.Clone(root)
		schema["definitions"] = definitions
		if err := write(filepath.Join(into, file), schema); err != nil {
			return err
		}
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema object }
			}
		}
	}
	if err := read(monitor, &crd); err != nil {
		return err
	}
	schema := strict(crd.Spec.Versions[0].Schema.OpenAPIV3Schema).(object)
	schema["properties"].(object)["metadata"] = object{"type": "object"}
	return write(filepath.Join(into, "servicemonitor-monitoring-v1.json"), schema)
}

// collect adds the definition of name, and all that it refers to.
func collect(all object, name string, into object) {
	if _, ok := into[name]; ok {
		return
	}
	into[name] = strict(all[name])
	if strings.HasSuffix(name, ".resource.Quantity") {
		into[name] = object{"type": []string{"string", "number"}} // cpu: 1
	}
	text, err := json.Marshal(into[name])
	if err != nil {
		panic(err)
	}
	for _, part := range strings.Split(string(text), prefix)[1:] {
		collect(all, part[:strings.IndexByte(part, '"')], into)
	}
}

// strict returns a schema that refuses unknown fields, without descriptions and without what JSON Schema does not know.
func strict(value any) any {
	schema, ok := value.(object)
	if !ok {
		return value
	}
	if _, property := schema["type"].(object); !property && (schema["format"] == "int-or-string" || schema["x-kubernetes-int-or-string"] == true) {
		return object{"type": []string{"string", "integer"}}
	}
	out := object{}
	for key, value := range schema {
		switch _, text := value.(string); {
		case key == "description" && text, key == "format" && text, key == "nullable", strings.HasPrefix(key, "x-kubernetes"):
		case key == "properties":
			properties := object{}
			for name, property := range value.(object) {
				properties[name] = strict(property)
			}
			out[key] = properties
			if schema["additionalProperties"] == nil {
				out["additionalProperties"] = false
			}
		default:
			out[key] = strict(value)
		}
	}
	return out
}

func read(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

func write(file string, schema object) error {
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
