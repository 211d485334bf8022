package table

import (
	"encoding/json"
	"fmt"
)

// maxHeaders is how many names the headers of a record may have. A name takes a hundred times the memory of its text,
// and receivers take far fewer.
const maxHeaders = 1000

// moreNames reports whether a JSON object has more than a number of names, without keeping any of them.
func moreNames(text []byte, most int) bool {
	depth, names, quoted := 0, 0, false
	for i := 0; i < len(text) && names <= most; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 1:
			names++
		}
	}
	return names > most
}

// parseHeaders reads a JSON object. Values that are not strings keep their JSON text.
func parseHeaders(text []byte) (map[string]string, error) {
	if moreNames(text, maxHeaders) {
		return nil, fmt.Errorf("its headers have more than %d names: put the rest into the payload", maxHeaders)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("its headers are not a JSON object: %w", err)
	}
	headers := make(map[string]string, len(values))
	for name, value := range values {
		headers[name] = string(value)
		var s string
		if value[0] == '"' && json.Unmarshal(value, &s) == nil {
			headers[name] = s
		}
	}
	return headers, nil
}
