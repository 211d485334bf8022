package table

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// stamping is what a default says about the stamps it makes.
type stamping struct {
	stamp    stamp
	rounding time.Duration // what it may be off by
	zoned    bool          // the clock as it reads in the TimeZone of the session that inserts
}

// utc are the time zones whose timestamps without time zone never jump.
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

// conversions are what may be around the clock. None changes when the value is made.
var conversions = []struct {
	around *regexp.Regexp
	// to is the type of its value, of what it is given; "" if it stays.
	to func(from string) string
	// through has the value pass through the session's TimeZone, if it changes the type.
	through bool
}{
	{wrapping, func(from string) string { return from }, false},
	{castWith, func(string) string { return "timestamptz" }, true},
	{castOut, func(string) string { return "timestamp" }, true},
	{atUTC, turned, false},
	{timezoneOf, turned, false},
}

// turned is the type of AT TIME ZONE.
func turned(from string) string {
	if from == "timestamptz" {
		return "timestamp"
	}
	return "timestamptz"
}

// readDefault finds the clock in a default, and follows its value through casts and
// conversions to UTC to the column. A change between the types other than by a
// conversion to UTC reads the clock in the session's TimeZone.
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

// clock is when a clock is read, and the type of its value.
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
