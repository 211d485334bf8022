package outbox

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The digits that PostgreSQL's numeric holds, and with it a number of jsonb.
const (
	maxWhole    = 131_072 // before the point
	maxFraction = 16_383  // after it
)

// jsonbBytes returns the most bytes that the server prints for valid JSON once it is a jsonb: with a space after each
// comma and colon, without escapes where none are needed, and with all digits of a number. It refuses what jsonb cannot
// hold: the character U+0000, half of a surrogate pair, and numbers of too many digits.
func jsonbBytes(text []byte) (size int, err error) {
	for i := 0; i < len(text); {
		length, printed := 1, 1
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			printed = 0
		case ',', ':':
			printed = 2
		case '"':
			length, printed, err = jsonbString(text[i:])
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			length, printed, err = jsonbNumber(text[i:])
		}
		if err != nil {
			return 0, fmt.Errorf("%w: from byte %d of its JSON", err, i)
		}
		i += length
		size += printed
	}
	return size, nil
}

// jsonbString reads the string that the text begins with.
func jsonbString(text []byte) (length, printed int, err error) {
	printed = 2 // the quotes
	for i := 1; ; {
		switch {
		case text[i] == '"':
			return i + 1, printed, nil
		case text[i] != '\\':
			i++
			printed++
		case text[i+1] != 'u':
			i += 2
			printed += 2
		default:
			char, escape, err := unescape(text[i:])
			if err != nil {
				return 0, 0, err
			}
			i += escape
			switch {
			case char < ' ':
				printed += len(`\u0001`)
			case char == '"' || char == '\\':
				printed += 2
			default:
				printed += utf8.RuneLen(char)
			}
		}
	}
}

// unescape reads the \u escape, or the pair of them, that the text begins with.
func unescape(text []byte) (char rune, length int, err error) {
	const one, two = len(`\uXXXX`), len(`\uXXXX\uXXXX`)
	char = unit(text)
	switch {
	case char == 0:
		return 0, 0, errNUL
	case !utf16.IsSurrogate(char):
		return char, one, nil
	case bytes.HasPrefix(text[one:], []byte(`\u`)):
		if pair := utf16.DecodeRune(char, unit(text[one:])); pair != utf8.RuneError {
			return pair, two, nil
		}
	}
	return 0, 0, fmt.Errorf("has the escape %s, half of a surrogate pair, which is no character", text[:one])
}

// unit reads the four digits of a \u escape in valid JSON.
func unit(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n)
}

// jsonbNumber reads the number that the text begins with.
func jsonbNumber(text []byte) (length, printed int, err error) {
	length = len(text) - len(bytes.TrimLeft(text, "+-.0123456789eE"))
	mantissa, exponent, _ := bytes.Cut(bytes.ToLower(text[:length]), []byte("e"))
	whole, fraction, _ := bytes.Cut(bytes.TrimPrefix(mantissa, []byte("-")), []byte("."))
	shift := 0
	if len(exponent) > 0 {
		if shift, err = strconv.Atoi(string(exponent)); err != nil {
			shift = -1 << 30 // of either sign: PostgreSQL refuses both
		}
	}
	before, after := 0, len(fraction)-shift
	if digits := bytes.TrimLeft(append(whole[:len(whole):len(whole)], fraction...), "0"); len(digits) > 0 {
		before = len(digits) - after
	}
	if before > maxWhole || after > maxFraction {
		return 0, 0, fmt.Errorf("has a number of more digits than PostgreSQL holds: at most %d before the point and %d after it", maxWhole, maxFraction)
	}
	return length, len("-0.") + max(before, 0) + max(after, 0), nil
}
