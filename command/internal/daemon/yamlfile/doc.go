// Package yamlfile reads a strict YAML file. It reports every fault of the file at once, each with its line, its
// column and the source line, and without secrets.
//
// # Nouns
//
//   - File: a parsed file. It collects faults while it is read.
//   - Node: a value in the file, which its reader reads as the type that it wants.
//   - Mapping: the keys of a value and their nodes.
//   - Reference: ${NAME} or ${file:/path} in a scalar, read from the environment or from a file. $${NAME} is the text
//     ${NAME}.
//   - Fault: a mistake at a place, with the next step.
//
// # Invariants
//
//   - References are replaced after the file is parsed. So a secret cannot change the structure, no matter what it contains.
//   - A fault never shows the value of a reference, nor a scalar that is read with Secret, or not read at all.
//   - An unknown key, or a key that comes twice, is a fault.
//   - After a fault, reading goes on with the zero value.
//
// # Left out
//
// Tags, several documents, lists of anything but texts, and the meaning of the keys.
package yamlfile
