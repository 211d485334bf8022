package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Run shows the dispatcher at work and returns nil if it kept its promises. Any other verdict is an error, as is
// whatever kept the demo from coming to one. It removes what it made, also when ctx ends or one of the signals that
// ask a program to end arrives; further signals are passed over while it does so. Several at
// once do not disturb each other.
func Run(ctx context.Context, config Config) error {
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	ctx, unregister := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer unregister()
	interrupted := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	screen := newScreen(config.Output, fail)
	defer screen.end()
	defer context.AfterFunc(interrupted, func() { screen.say("interrupted: removing what the demo made") })()
	screen.introduce()
	h, err := record(ctx, config, screen, fail)
	err = config.secrets().Error(err) // a server may repeat the login
	if interrupted.Err() != nil {
		return interruption(err)
	}
	if err != nil {
		return err
	}
	v := judge(h)
	screen.pronounce(v)
	return v.Err()
}

// leftover is a clean-up that failed.
type leftover struct{ error }

func (l leftover) Unwrap() error { return l.error }

// removed marks the error of a clean-up.
func removed(err error) error {
	if err == nil {
		return nil
	}
	return leftover{err}
}

// interruption is all that an end that was asked for leaves to say: what else failed did so because of it.
func interruption(err error) error {
	var left leftover
	if errors.As(err, &left) {
		return fmt.Errorf("interrupted: %w", left)
	}
	return errors.New("interrupted; nothing of the demo is left behind")
}

// record sets everything up, lets it run, and takes it down again. What it returns is complete: nobody delivers or
// commits any more.
func record(ctx context.Context, config Config, screen *screen, fail func(error)) (h history, err error) {
	db, err := openDatabase(ctx, config.DatabaseURL, screen)
	if err != nil {
		return history{}, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	sms, err := newReceiver()
	if err != nil {
		return history{}, err
	}
	defer sms.close()
	screen.part("SMS service", "%s; notes position, sequence, epoch and contents", sms.url)
	workers, err := startPair(ctx, config.Executable, db, sms.url, fail)
	if err != nil {
		return history{}, err
	}
	defer func() { err = errors.Join(err, workers.close()) }()
	s := &show{screen: screen, db: db, sms: sms, workers: workers}
	return s.run(ctx, config, fail)
}
