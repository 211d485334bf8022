package console

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// query is what the viewer asked the fleet for.
type query struct {
	Text, State, Sort string
	Grouped           bool
}

type choice struct {
	Value, Name string
	Chosen      bool
}

// valueOf is a name as the value of a choice or of a hidden field. Browsers do not send back each hidden character as it
// was, so a name that has one is written as JSON.
func valueOf(name string) string {
	if !strings.ContainsFunc(name, visible.Hidden) {
		return name
	}
	text, _ := json.Marshal(name) // a text: this cannot fail
	return string(visible.EscapeJSON(text))
}

// nameOf is the name of which a form sends the value.
func nameOf(value string) (name string) {
	if json.Unmarshal([]byte(value), &name) == nil && valueOf(name) == value {
		return name
	}
	return value
}

func newQuery(v url.Values) query {
	q := query{Text: v.Get("q"), State: v.Get("state"), Sort: v.Get("sort"), Grouped: v.Get("group") == "prefix"}
	if !slices.Contains(desk.States(), q.State) {
		q.State = ""
	}
	if !slices.Contains([]string{"name", "age", "records", "rate"}, q.Sort) {
		q.Sort = "need"
	}
	return q
}

// values writes the query back into an address.
func (q query) values(v url.Values) url.Values {
	for key, value := range map[string]string{"q": q.Text, "state": q.State, "sort": q.Sort} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Grouped {
		v.Set("group", "prefix")
	}
	return v
}

// States are the choices of the menu.
func (q query) States() []choice {
	all := []choice{{"", "every state", q.State == ""}}
	for _, s := range desk.States() {
		all = append(all, choice{s, s, s == q.State})
	}
	return all
}

// Sorts are the choices of the menu.
func (q query) Sorts() []choice {
	all := []choice{{"need", "what needs me first", false}, {"name", "by name", false}, {"age", "by age of the oldest", false}, {"records", "by records that wait", false}, {"rate", "by rate", false}}
	for i := range all {
		all[i].Chosen = all[i].Value == q.Sort
	}
	return all
}

func (q query) columns() map[string]column {
	all := map[string]column{"name": {Name: "Process"}, "need": {Name: "State"}, "age": {Name: "Waiting"}, "rate": {Name: "Rate"}}
	for key, col := range all {
		other := q
		other.Sort = key
		col.URL, col.Current = "/?"+other.values(url.Values{}).Encode(), key == q.Sort
		all[key] = col
	}
	return all
}

func (q query) counts(lines []desk.Line) []stateCount {
	numbers, needed := map[string]int64{}, map[string]bool{}
	for _, l := range lines {
		numbers[l.State]++
		needed[l.State] = needed[l.State] || l.Need != nil
	}
	all := []stateCount{{Word: plural(len(lines)), Number: count(int64(len(lines))), URL: q.with(""), Current: q.State == ""}}
	for _, s := range desk.States() {
		if numbers[s] > 0 {
			tone := tones[s]
			if tone == "bad" && !needed[s] {
				tone = "warn"
			}
			all = append(all, stateCount{Word: s, Tone: tone, Number: count(numbers[s]), URL: q.with(s), Current: q.State == s})
		}
	}
	return all
}

func plural(n int) string {
	if n == 1 {
		return "process"
	}
	return "processes"
}

func (q query) with(state string) string {
	q.State = state
	return "/?" + q.values(url.Values{}).Encode()
}

// choose returns the lines that the query wants, in its order.
func (q query) choose(lines []desk.Line) []desk.Line {
	words := strings.Fields(strings.ToLower(q.Text))
	var chosen []desk.Line
	for _, l := range lines {
		text := strings.ToLower(l.Process + " " + l.State + " " + l.Worker)
		if (q.State == "" || l.State == q.State) && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			chosen = append(chosen, l)
		}
	}
	by := map[string]func(a, b desk.Line) int{
		"name":    func(a, b desk.Line) int { return cmp.Compare(a.Process, b.Process) },
		"age":     func(a, b desk.Line) int { return cmp.Compare(age(b), age(a)) },
		"records": func(a, b desk.Line) int { return cmp.Compare(records(b), records(a)) },
		"rate":    func(a, b desk.Line) int { return cmp.Compare(rate(b), rate(a)) },
	}[q.Sort]
	if by != nil {
		slices.SortStableFunc(chosen, by)
	}
	return chosen
}

func age(l desk.Line) float64 {
	if l.Waiting == nil || l.Waiting.Records == 0 || l.Waiting.Seconds == nil {
		return -1
	}
	return *l.Waiting.Seconds
}

func records(l desk.Line) int64 {
	if l.Waiting == nil {
		return -1
	}
	return l.Waiting.Records
}

func rate(l desk.Line) float64 {
	if l.Rate == nil {
		return -1
	}
	return *l.Rate
}

// groups makes the bodies of the table.
func (q query) groups(lines []desk.Line) []group {
	if !q.Grouped {
		all := group{}
		for _, l := range lines {
			all.Rows = append(all.Rows, newRow(l))
		}
		if len(all.Rows) == 0 {
			return nil
		}
		return []group{all}
	}
	members := map[string][]desk.Line{}
	var order []string
	for _, l := range lines {
		p := prefix(l.Process)
		if members[p] == nil {
			order = append(order, p)
		}
		members[p] = append(members[p], l)
	}
	var all []group
	for _, p := range order {
		g := group{Name: visible.Inline(visible.Cut(p)), Summary: summary(members[p])}
		for _, l := range members[p] {
			g.Rows = append(g.Rows, newRow(l))
		}
		all = append(all, g)
	}
	return all
}

// prefix is the part of a name before its first separator; all of it if there is none.
func prefix(name string) string {
	if at := strings.IndexAny(name, "_-./:"); at > 0 {
		return name[:at+1]
	}
	return name
}

func summary(lines []desk.Line) string {
	var waiting int64
	need := 0
	for _, l := range lines {
		waiting += max(0, records(l))
		if l.Need != nil {
			need++
		}
	}
	text := counted(int64(len(lines)), "process", "processes")
	if waiting > 0 {
		text += " · " + counted(waiting, "record waits", "records wait")
	}
	if need > 0 {
		text += " · " + counted(int64(need), "needs you", "need you")
	}
	return text
}
