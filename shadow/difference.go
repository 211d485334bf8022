package shadow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

const (
	maxNamed = 20      // differences that are named
	maxJSON  = 1 << 20 // bytes of a body that is read as JSON
	maxDepth = 100     // of that JSON
)

// Unstored is among Difference.Differs if calls differ in credentials, a signature, headers from the configuration or
// the full address alone, which are compared and not stored.
const Unstored = "something that is not stored"

// differences names what differs between two calls, without any value. It returns none if they are the same.
func differences(a, b sinks.Call) (all []string) {
	if a.Target != b.Target {
		all = append(all, "target")
	}
	if a.Target == b.Target && a.Hidden != b.Hidden { // the full address is hidden, so it differs where the target does
		all = append(all, Unstored)
	}
	for _, name := range names(a.Headers, b.Headers) {
		value, here := a.Headers[name]
		if other, there := b.Headers[name]; here != there || value != other {
			all = append(all, "header "+visible.Short(name))
		}
	}
	if !bytes.Equal(a.Body, b.Body) {
		all = append(all, inBody(a.Body, b.Body)...)
	}
	if len(all) > maxNamed {
		all = append(all[:maxNamed], "and more")
	}
	return all
}

func names[V any](a, b map[string]V) []string {
	both := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(both)
	return slices.Compact(both)
}

// inBody names the fields that differ if both bodies are JSON, and else the first byte that does.
func inBody(a, b []byte) []string {
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	bytewise := []string{fmt.Sprintf("body, from byte %d on", from)}
	left, ok := decode(a)
	right, both := decode(b)
	if !ok || !both {
		return bytewise
	}
	var fields []string
	inJSON("body", left, right, maxDepth, &fields)
	if len(fields) == 0 { // they differ in white space, the order of keys, or a key that comes twice
		return bytewise
	}
	return fields
}

func decode(body []byte) (value any, ok bool) {
	if len(body) > maxJSON {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	return value, strings.TrimSpace(string(body[decoder.InputOffset():])) == ""
}

// inJSON names the paths at which two values differ.
func inJSON(at string, a, b any, depth int, all *[]string) {
	object, isObject := a.(map[string]any)
	otherObject, bothObjects := b.(map[string]any)
	list, isList := a.([]any)
	otherList, bothLists := b.([]any)
	switch {
	case len(*all) > maxNamed:
	case depth > 0 && isObject && bothObjects:
		for _, name := range names(object, otherObject) {
			value, here := object[name]
			other, there := otherObject[name]
			if path := at + "." + visible.Short(name); here != there {
				*all = append(*all, path)
			} else {
				inJSON(path, value, other, depth-1, all)
			}
		}
	case depth > 0 && isList && bothLists && len(list) == len(otherList):
		for i := range list {
			inJSON(fmt.Sprintf("%s[%d]", at, i), list[i], otherList[i], depth-1, all)
		}
	case !reflect.DeepEqual(a, b):
		*all = append(*all, at)
	}
}
