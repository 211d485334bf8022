// Package yamlfile reads a strict YAML file whose every fault is reported at
// once, at its line and column, beside the source line, and without secrets.
//
// # Nouns
//
//   - File: a parsed file; collects faults while it is read.
//   - Node: a value in it, read as what it is meant to be.
//   - Mapping: the keys of a value and their nodes.
//   - Reference: ${NAME} or ${file:/path} in a scalar, read from the environment
//     or from a file. $${NAME} stands for the text ${NAME}.
//   - Fault: what is wrong at a place, with the next step.
//
// # Invariants
//
//   - References are replaced after the file is parsed: whatever a secret
//     contains, it cannot change the structure.
//   - What a reference stands for never stands in a fault; neither does a scalar
//     that is read with Secret, or not read at all.
//   - A key that is not known, or that stands twice, is a fault.
//   - Reading goes on after a fault, with the zero value.
//
// # Left out
//
// Tags, several documents, lists, and what the keys mean.
package yamlfile
