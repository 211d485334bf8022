// Package model_test has spin verify the models of this directory: they hold as they are, and each protection switched
// off breaks a claim. See README.md.
package model_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// verification is one search through a model.
type verification struct {
	model string
	// defines are macros of the model: a switch, and the bounds of the search.
	defines string
	// claim is what the switch breaks.
	claim string
}

var holding = []verification{
	{model: "lease", defines: "FAULTS=2"},
	{model: "lease", defines: "FAULTS=1 RECORDS=3 RESTARTS=1"},
	{model: "lease", defines: "FAULTS=2 RECORDS=3 CHECKPOINT=2"},
	{model: "lease", defines: "FAULTS=1 OPERATIONS=1"},
	{model: "lease", defines: "LIVENESS FAULTS=2"},
	{model: "keep"},
	{model: "keep", defines: "PROMPT"},
	{model: "fence", defines: "ROWS=3"},
	{model: "fence", defines: "TRANSACTIONS=2"},
	{model: "fence", defines: "PREPARES=1 FORGETS=1"},
	{model: "fence", defines: "ORDER_ID ROWS=3 PREPARES=1 FORGETS=1"},
	{model: "fence", defines: "LIVENESS PREPARES=1"},
	{model: "fence", defines: "LIVENESS ORDER_ID ROWS=3"},
	{model: "start"},
	{model: "start", defines: "PREPARES=1"},
	{model: "promotion", defines: "RECORDS=3"},
	{model: "promotion", defines: "WORKERS=2 RECORDS=1"},
	{model: "promotion", defines: "CLOCK_BEHIND RECORDS=3"},
	{model: "promotion", defines: "RESTORE RECORDS=3"},
	{model: "promotion", defines: "RESTORE CLOCK_BEHIND RECORDS=3"},
	{model: "promotion", defines: "RESTORE PAUSE CLOCK_BEHIND RECORDS=3"},
	{model: "promotion", defines: "RESTORE YOUNGER RECORDS=3"},
	{model: "promotion", defines: "STEP RECORDS=3"},
	{model: "promotion", defines: "CRASH RECORDS=3"},
	{model: "ids", defines: "RESETS=2 RECORDS=4"},
	{model: "ids", defines: "IDS=3 RECORDS=4"},
	{model: "ids", defines: "WORKERS=2"},
}

// The first macro is the switch.
var breaking = []verification{
	{"lease", "LOCK_IGNORED FAULTS=0", "I8_sent_under_the_lock"},
	{"lease", "EPOCH_NOT_COMMITTED FAULTS=1", "I6_epochs_grow"},
	{"lease", "EPOCH_UNCHECKED_BY_ADVANCE FAULTS=1", "I7_advanced_under_the_epoch_of_the_row"},
	{"lease", "UPDATE_OF_NO_ROW_COMMITS FAULTS=1", "G4_effects_commit_with_the_advance_alone"},
	{"lease", "EPOCH_UNCHECKED_BY_RELOCK FAULTS=1", "I6_epochs_grow"},
	{"lease", "ADVANCE_UNACKNOWLEDGED FAULTS=0", "I1_the_cursor_passes_only_what_was_acknowledged"},
	{"lease", "PEEK_UNCHECKED FAULTS=0", "I5_no_duplicate_without_a_fault"},
	{"lease", "READ_AHEAD_KEPT FAULTS=1", "I4_sent_only_when_the_one_before_was_acknowledged"},
	{"lease", "POSITION_REMEMBERED FAULTS=1", "I5_no_duplicate_without_a_fault"},
	{"lease", "DEBT_UNCHECKED LIVENESS FAULTS=1", "I11_the_cursor_reaches_the_end"},
	{"lease", "NO_SERVER_TIMEOUT LIVENESS FAULTS=1", "I11_the_cursor_reaches_the_end"},
	{"lease", "TORN_SESSION_STAYS LIVENESS FAULTS=1", "I11_the_cursor_reaches_the_end"},
	{"lease", "STATE_UNCHECKED FAULTS=0 OPERATIONS=1", "I10_a_paused_process_sends_nothing"},
	{"lease", "SEEK_KEEPS_EPOCH FAULTS=1 OPERATIONS=1", "I4_sent_only_when_the_one_before_was_acknowledged"},
	{"lease", "RESUME_KEEPS_EPOCH FAULTS=0 OPERATIONS=1", "I18_sent_as_the_table_is"},
	{"lease", "PAGE_OF_ANY_EPOCH FAULTS=0 OPERATIONS=1", "I18_sent_as_the_table_is"},

	{"keep", "GIVE_UP_LATE", "I8_calls_run_under_the_lock"},
	{"keep", "NO_PINGS", "I8_calls_run_under_the_lock"},
	{"keep", "HELD_UNASKED", "I8_calls_run_under_the_lock"},
	{"keep", "HELD_ASKS_ONCE", "I8_calls_run_under_the_lock"},
	{"keep", "LEASE_COUNTED_FROM_ITS_ANSWER", "I8_calls_run_under_the_lock"},
	{"keep", "ADVANCE_COUNTED_FROM_ITS_ANSWER", "I8_calls_run_under_the_lock"},

	{"fence", "FENCE_IGNORED", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "FENCE_INCLUSIVE", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "TIES_SKIPPED ROWS=3 LIMIT=1", "I1_nothing_visible_is_passed_over"},
	{"fence", "MARK_AFTER_WRITERS", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "ROWS_BEFORE_WRITERS", "I1_nothing_visible_is_passed_over"},
	{"fence", "FIRST_SIGHT_TRUSTED FORGETS=1", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "BOUND_BY_OWN_MARK", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "BOUND_NOT_KEPT", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "PREPARED_AS_NEW PREPARES=1", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "WAIT_FOR_STRANGERS LIVENESS", "I11_every_committed_row_is_read"},
	{"fence", "STAMP_BEFORE_LOCK", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "LOCK_DROPPED_FIRST", "I1_nothing_commits_behind_the_cursor"},
	{"fence", "CLOCK_STEPS_BACK", "I1_nothing_commits_behind_the_cursor"},

	{"start", "BETWEEN_IGNORED", "I1_nothing_commits_behind_the_cursor"},
	{"start", "IDLE_IGNORED", "I1_nothing_commits_behind_the_cursor"},
	{"start", "STATES_FIRST", "I1_nothing_commits_behind_the_cursor"},
	{"start", "PREPARED_FIRST PREPARES=1", "I1_nothing_commits_behind_the_cursor"},
	{"start", "PREPARED_AS_NEW PREPARES=1", "I1_nothing_commits_behind_the_cursor"},
	{"promotion", "SEQUENCE_KEPT", "I15_a_number_is_of_one_record"},
	{"promotion", "KEY_WITHOUT_HISTORY", "I15_a_key_is_of_one_record"},
	{"promotion", "EPOCH_KEPT", "I16_an_epoch_is_of_one_server"},
	{"promotion", "DECISION_COUNTS_ON CLOCK_BEHIND", "I16_an_epoch_is_of_one_server"},
	{"promotion", "SERVERS_UNCHECKED", "I1_the_cursor_passes_only_what_was_received"},
	{"promotion", "LATE_UNCHECKED CLOCK_BEHIND", "I1_no_late_row_is_left_behind"},
	{"promotion", "LATE_CHECKED_AFTER CLOCK_BEHIND", "I1_no_late_row_is_left_behind"},
	{"promotion", "RETRY_ACCEPTS CLOCK_BEHIND", "I1_no_late_row_is_left_behind"},
	{"promotion", "RESTORED_ACCEPTS RESTORE CLOCK_BEHIND", "I1_no_late_row_is_left_behind"},
	{"promotion", "SEEK_SETTLES CLOCK_BEHIND", "I1_no_late_row_is_left_behind"},
	{"promotion", "STEP_FORGOTTEN STEP", "I1_no_late_row_is_left_behind"},
	{"promotion", "RESTORE_UNSEEN RESTORE", "I15_a_number_is_of_one_record"},
	{"promotion", "LOG_UNSEEN RESTORE", "I15_a_number_is_of_one_record"},
	{"promotion", "LOG_LEARNT_BY_READS_ALONE RESTORE PAUSE", "I10_a_pause_is_not_lost"},
	{"promotion", "UNFLUSHED_SENT CRASH", "I15_a_number_is_of_one_record"},
	{"promotion", "OTHER_ORIGIN_TRUSTED RESTORE YOUNGER", "I15_a_number_is_of_one_record"},
	{"promotion", "LOG_OF_ONE_ORIGIN RESTORE YOUNGER", "I15_a_key_is_of_one_record"},

	{"ids", "SEQUENCE_UNCHECKED", "I1_no_row_is_passed_over_silently"},
	{"ids", "HALT_NOT_DURABLE", "I1_no_row_is_passed_over_silently"},
	{"ids", "AHEAD_FORGETS", "I1_no_row_is_passed_over_silently"},
	{"ids", "RETRY_KEEPS_HISTORY RECORDS=4", "I15_a_key_is_of_one_record"},
	{"ids", "SEEK_KEEPS_HISTORY", "I15_a_key_is_of_one_record"},
	{"ids", "NUMBERS_GO_ON", "I15_a_number_is_of_one_record"},
	{"ids", "EPOCH_KEPT", "I15_a_key_is_of_one_record"},
	{"ids", "FORGET_KEEPS_HISTORY", "I15_a_key_is_of_one_record"},
	{"ids", "CATALOG_IGNORED", "I15_a_key_is_of_one_record"},
	{"ids", "FORGET_DROPS_HALT", "I15_a_key_is_of_one_record"},
	{"ids", "SEEK_BEFORE_THE_HISTORY", "I15_a_key_is_of_one_record"},
	{"ids", "FORGET_DROPS_HISTORIES", "I15_a_key_is_of_one_record"},
	{"ids", "PASSED_BETWEEN_READS", "I1_no_row_is_passed_over_silently"},
	{"ids", "RESET_TO_WHAT_WAS_SENT", "I15_a_key_is_of_one_record"},
	{"ids", "LOST_BEFORE_THE_HALT", "I1_no_row_is_passed_over_silently"},
	{"ids", "BACK_BEFORE_THE_HALT", "I15_a_key_is_of_one_record"},
}

func (v verification) String() string { return strings.TrimSpace(v.model + ".pml " + v.defines) }

// protection is the switch of a verification that breaks a claim.
func (v verification) protection() string { return strings.Fields(v.defines)[0] }

func (v verification) liveness() bool { return strings.Contains(v.defines, "LIVENESS") }

func TestModels_Hold(t *testing.T) {
	t.Parallel()
	for _, v := range holding {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			r := v.run(t)
			require.Empty(t, r.broken)
			t.Logf("%s: holds in each of %s states", v, r.states)
		})
	}
}

func TestModels_NeedEveryProtection(t *testing.T) {
	t.Parallel()
	for _, v := range breaking {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, v.claim, v.run(t).broken)
			t.Logf("%s: breaks %s", v, v.claim)
		})
	}
}

// result of a search that came to its end, or to an error.
type result struct {
	broken string // the claim; "" if all hold
	states string
}

// searchTimeout is many times what the longest search takes.
const searchTimeout = 5 * time.Minute

// run searches the whole model, for an error by breadth, so that it finds one of the shortest trails; a cycle can only
// be found by depth.
func (v verification) run(t *testing.T) result {
	t.Helper()
	spin, gcc := pgtest.Require(t, "spin"), pgtest.Require(t, "gcc")
	ctx, cancel := context.WithTimeout(t.Context(), searchTimeout)
	defer cancel()
	dir := t.TempDir()
	model, err := filepath.Abs(v.model + ".pml")
	require.NoError(t, err)
	command(t, ctx, dir, spin, append(macros(strings.Fields(v.defines)...), "-a", model)...)

	options, search := macros("SAFETY"), []string{"-m100000", "-w18"}
	switch {
	case v.liveness():
		options, search = macros("NFAIR=3"), append(search, "-a", "-f")
	case v.claim != "":
		options = append(options, "-DBFS")
	}
	if v.claim == "" {
		options = append(options, "-O1") // worth its time where the search is long
	}
	command(t, ctx, dir, gcc, append(options, "-w", "-DMEMLIM=400", "-o", "pan", "pan.c")...)
	return judge(t, command(t, ctx, dir, "./pan", search...))
}

func macros(names ...string) []string {
	options := make([]string, len(names))
	for i, name := range names {
		options[i] = "-D" + name
	}
	return options
}

func command(t *testing.T, ctx context.Context, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, output)
	return string(output)
}

var (
	errorCount = regexp.MustCompile(`errors: (\d+)\n`)
	stateCount = regexp.MustCompile(`(\d+) states, stored`)
	assertion  = regexp.MustCompile(`assertion violated \((\w+)\|\|`)
	cycle      = regexp.MustCompile(`acceptance cycle[^~]*never claim\s+\+ \((\w+)\)`)
	incomplete = regexp.MustCompile(`(?i)not completed|truncated|max search depth|out of memory|MEMLIM|hash table full`)
)

// judge reads what a search printed. One that found no error has to have seen every state.
func judge(t *testing.T, output string) result {
	t.Helper()
	errors := errorCount.FindStringSubmatch(output)
	require.NotNil(t, errors, output)
	states := stateCount.FindStringSubmatch(output)
	require.NotNil(t, states, output)
	if errors[1] == "0" {
		require.NotRegexp(t, incomplete, output)
		return result{states: states[1]}
	}
	broken := assertion.FindStringSubmatch(output)
	if broken == nil {
		broken = cycle.FindStringSubmatch(output)
	}
	require.NotNil(t, broken, "an error that is no claim's:\n%s", output)
	return result{broken: broken[1]}
}

func TestJudge_TakesNoUnfinishedSearchForSuccess(t *testing.T) {
	t.Parallel()
	for _, output := range []string{
		"Warning: Search not completed\nState-vector 9 byte, depth reached 9, errors: 0\n 9 states, stored\n",
		"error: max search depth too small\nState-vector 9 byte, depth reached 9, errors: 0\n 9 states, stored\n",
		"pan: reached -DMEMLIM bound\nState-vector 9 byte, depth reached 9, errors: 0\n 9 states, stored\n",
	} {
		require.Regexp(t, incomplete, output)
	}
	require.NotRegexp(t, incomplete, "State-vector 9 byte, depth reached 9, errors: 0\n 9 states, stored\n")
}

var conditional = regexp.MustCompile(`(?m)^#ifn?def (\w+)`)

// modes are macros that take no protection away.
var modes = []string{"LIVENESS", "PROMPT", "ORDER_ID", "RESTORE", "CLOCK_BEHIND", "STEP", "CRASH", "PAUSE", "YOUNGER"}

// switches are the macros of a model that take a protection away: not its modes, and not its bounds, which have a default.
func switches(t *testing.T, model string) []string {
	t.Helper()
	text, err := os.ReadFile(model + ".pml")
	require.NoError(t, err)
	var found []string
	for _, match := range conditional.FindAllStringSubmatch(string(text), -1) {
		bound := strings.Contains(string(text), "\n#define "+match[1]+" ")
		if !bound && !slices.Contains(modes, match[1]) {
			found = append(found, match[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Every switch is tried, and README.md says what it breaks, as does the table of mutants.
func TestReadme_TellsWhatEverySwitchBreaks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	reliability, err := os.ReadFile("../reliability.md")
	require.NoError(t, err)
	for _, model := range []string{"lease", "keep", "fence", "start", "promotion", "ids"} {
		var tried []string
		for _, v := range breaking {
			if v.model == model {
				tried = append(tried, v.protection())
				require.Contains(t, string(reliability), "| `"+v.defines+"` in `"+model+".pml` | `"+v.claim+"` |")
				require.Regexp(t, "(?m)^\\| `"+regexp.QuoteMeta(v.defines)+"` .*`"+v.claim+"`", string(readme))
			}
		}
		slices.Sort(tried)
		require.Equal(t, switches(t, model), tried, model)
	}
}
