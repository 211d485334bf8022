package route

import (
	"fmt"
	"maps"
	"strings"
)

// Tokens is New for an address of tokens with a dot between them: a subject, a routing key, a topic. Each value that
// the template prints is one token, or a part of one: see Token. Two kinds of text stay as they are. The names of the
// process and of the table do, since they come from the configuration. So does a text for which the template's author
// uses the function tokens: {{tokens .Type}} keeps the dots of a value, and escapes the text between them. So a
// record can neither add a token, nor be a wildcard, nor begin with a $.
//
// There is no define, block or template.
func Tokens(text string) (*Template, error) {
	functions := maps.Clone(functions)
	functions["tokens"] = tokens
	t, err := escaped(text, functions, func(value any) (string, error) {
		if text, ok := value.(own); ok {
			return string(text), nil
		}
		return Token(fmt.Sprint(value)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", text, err)
	}
	return t, nil
}

// tokens escapes the text between the dots of a value.
func tokens(value any) own {
	all := strings.Split(fmt.Sprint(value), ".")
	for i, token := range all {
		all[i] = Token(token)
	}
	return own(strings.Join(all, "."))
}

// Token makes one token from any text: every byte except ASCII letters, digits, '-', '_' and '~' becomes %XX. A URL
// decoder reverses it, and no two texts make the same token.
func Token(value string) string {
	n := 0
	for i := range len(value) {
		if !isPlain(value[i]) {
			n++
		}
	}
	if n == 0 {
		return value
	}
	const hex = "0123456789ABCDEF"
	token := make([]byte, 0, len(value)+2*n)
	for i := range len(value) {
		if c := value[i]; isPlain(c) {
			token = append(token, c)
		} else {
			token = append(token, '%', hex[c>>4], hex[c&0xF])
		}
	}
	return string(token)
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '~'
}
