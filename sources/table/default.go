package table

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// stamping describes the stamps that a default makes.
type stamping struct {
	stamp    stamp
	rounding time.Duration // the most that a stamp may be off by
	zoned    bool          // the clock as it reads in the TimeZone of the session that inserts
}

// utc lists the time zones in which timestamps without time zone never jump.
var utc = []string{"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu", "GMT", "Etc/GMT"}

// Defaults as pg_get_expr prints them, and as people write them in triggers.
var (
	wrapping   = regexp.MustCompile(`^\((.*)\)$`)
	castWith   = regexp.MustCompile(`(?i)^(.*)::timestamp(?:tz(?:\((\d)\))?|(?:\((\d)\))? with time zone)$`)
	castOut    = regexp.MustCompile(`(?i)^(.*)::timestamp(?:\((\d)\))?(?: without time zone)?$`)
	atUTC      = regexp.MustCompile(`(?i)^(.*) AT TIME ZONE '(?:` + strings.Join(utc, "|") + `)'(?:::text)?$`)
	timezoneOf = regexp.MustCompile(`(?i)^timezone\('(?:` + strings.Join(utc, "|") + `)'(?:::text)?, (.*)\)$`)
	afterLock  = regexp.MustCompile(`(?i)^clock_timestamp\(\)$`)
	atStart    = regexp.MustCompile(`(?i)^(?:now\(\)|transaction_timestamp\(\)|statement_timestamp\(\)|CURRENT_TIMESTAMP(?:\((\d)\))?)$`)
	nowText    = regexp.MustCompile(`^'now'::text$`)
	localStart = regexp.MustCompile(`(?i)^LOCALTIMESTAMP(?:\((\d)\))?$`)
)

// conversions may enclose the clock. None of them changes when the value is made.
var conversions = []struct {
	around *regexp.Regexp
	// to returns the type of the result, given the type of the argument; "" if the type stays.
	to func(from string) string
	// through: the value passes through the session's TimeZone if the conversion changes the type.
	through bool
}{
	{wrapping, func(from string) string { return from }, false},
	{castWith, func(string) string { return "timestamptz" }, true},
	{castOut, func(string) string { return "timestamp" }, true},
	{atUTC, turned, false},
	{timezoneOf, turned, false},
}

// turned returns the type that AT TIME ZONE makes.
func turned(from string) string {
	if from == "timestamptz" {
		return "timestamp"
	}
	return "timestamptz"
}

// readDefault finds the clock in a default. It follows the value through casts, and through conversions to UTC, to
// the column. A change between the types that is not a conversion to UTC reads the clock in the session's TimeZone.
func readDefault(expression *string, atType string) stamping {
	result := stamping{stamp: stampElsewhere}
	if expression == nil {
		return result
	}
	text := *expression
	var around []int
	for stripping := true; stripping; {
		stripping = false
		for i, c := range conversions {
			m := c.around.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			text, stripping = m[1], true
			around = append(around, i)
			for _, digits := range m[2:] {
				result.rounding = max(result.rounding, rounding(digits))
			}
			break
		}
	}
	var from string
	result.stamp, from, result.zoned = clock(text, &result.rounding)
	if result.stamp == stampElsewhere {
		return result
	}
	for _, i := range slices.Backward(around) {
		c := conversions[i]
		to := c.to(from)
		result.zoned = result.zoned || c.through && throughZone(from, to)
		from = to
	}
	result.zoned = result.zoned || throughZone(from, atType)
	return result
}

// throughZone reports whether a cast reads or writes the time of the session's zone.
func throughZone(from, to string) bool {
	return from != to && !(from == "text" && to == "timestamptz")
}

// clock returns when a clock is read, and the type of its value.
func clock(text string, precision *time.Duration) (made stamp, valueType string, zoned bool) {
	if afterLock.MatchString(text) {
		return stampAfterLock, "timestamptz", false
	}
	if nowText.MatchString(text) {
		return stampAtStart, "text", false
	}
	for _, c := range []struct {
		is        *regexp.Regexp
		valueType string
	}{{atStart, "timestamptz"}, {localStart, "timestamp"}} {
		if m := c.is.FindStringSubmatch(text); m != nil {
			*precision = max(*precision, rounding(m[1]))
			return stampAtStart, c.valueType, c.is == localStart
		}
	}
	return stampElsewhere, "", false
}
