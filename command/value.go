package command

import (
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/alecthomas/kong"
)

// level is a slog.Level whose error lists the possible levels.
type level slog.Level

// UnmarshalText is called by kong.
func (l *level) UnmarshalText(text []byte) error {
	if (*slog.Level)(l).UnmarshalText(text) != nil {
		return fmt.Errorf("%q is not a level: write debug, info, warn or error", text)
	}
	return nil
}

// duration reads a duration from the command line. Its error explains how to write one.
var duration kong.MapperFunc = func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 500ms, 30s or 2m", text)
	}
	target.SetInt(int64(d))
	return nil
}
