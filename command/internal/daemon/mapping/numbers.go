package mapping

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/itchyny/gojq"
)

// maxNumber is how many characters a number may have. The time in which gojq reads one grows with the square of its
// digits, and meanwhile it does not look at the context.
const maxNumber = 1000

var errNumber = fmt.Errorf("a number has more than %d characters, which is more than a mapping takes", maxNumber)

// bounded defines those functions of jq again that make numbers of text.
const bounded = `
	def unbounded_tonumber: tonumber;
	def unbounded_fromjson: fromjson;
	def tonumber: if type == "string" then bounded_text end | unbounded_tonumber;
	def fromjson: unbounded_fromjson | bounded_numbers;
	.`

// compile compiles a program in which every number that comes from a record is bounded, if those of its input are.
func compile(query *gojq.Query) (*gojq.Code, error) {
	before, err := gojq.Parse(bounded)
	if err != nil {
		return nil, err
	}
	query.FuncDefs = slices.Concat(before.FuncDefs, query.FuncDefs)
	return gojq.Compile(query,
		gojq.WithFunction("bounded_text", 0, 0, func(text any, _ []any) any {
			if len(text.(string)) > maxNumber {
				return errNumber
			}
			return text
		}),
		gojq.WithFunction("bounded_numbers", 0, 0, func(value any, _ []any) any {
			if hasLongNumber(value) {
				return errNumber
			}
			return value
		}))
}

// hasLongNumber looks through a value that was decoded from JSON.
func hasLongNumber(value any) bool {
	switch value := value.(type) {
	case json.Number:
		return len(value) > maxNumber
	case []any:
		return slices.ContainsFunc(value, hasLongNumber)
	case map[string]any:
		for _, member := range value {
			if hasLongNumber(member) {
				return true
			}
		}
	}
	return false
}
