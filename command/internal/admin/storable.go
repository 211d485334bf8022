package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// storable reports whether PostgreSQL takes every text of a request, in whichever form it is written. What is not well
// formed is left to those who read it.
func storable(r *http.Request, body []byte) bool {
	query, _ := url.ParseQuery(r.URL.RawQuery) // it has the pairs that can be read
	if !storableText(r.URL.Path) || !storableValues(query) {
		return false
	}
	if isAPI(r) {
		return storableJSON(body)
	}
	form, _ := url.ParseQuery(string(body))
	return storableValues(form)
}

func storableValues(values url.Values) bool {
	for name, all := range values {
		if !storableText(name) || !storableText(strings.Join(all, "")) {
			return false
		}
	}
	return true
}

func storableJSON(body []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			return true // the end, or a fault
		}
		if text, is := token.(string); is && !storableText(text) {
			return false
		}
	}
}

func storableText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
