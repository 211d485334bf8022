package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Run is the history of all actors. Entries are in the order of their files; Writes are those of all producers, one
// after another.
type Run struct {
	Setting    Setting
	Writes     []Write
	Deliveries []Delivery
	Faults     []Fault
	Actions    []Action
	Moves      []Move
	Told       []Told
	Holds      []Hold
	Letters    []Letter
	Rows       []Row
	Applied    []Applied
	Ends       []End
	Beats      []Beat
	Cell       Cell
}

// The actors; those of producers have a number behind the name.
const (
	SettingActor  = "run"
	ProducerActor = "producer-"
	ReceiverActor = "receiver"
	NemesisActor  = "nemesis"
	OperatorActor = "operator"
	CursorActor   = "cursor"
	WatchActor    = "watch"
	HoldsActor    = "holds"
	LettersActor  = "letters"
	RowsActor     = "rows"
	AppliedActor  = "applied"
	EndActor      = "end"
	BeatsActor    = "beats"
)

// Read reads what the actors of a directory noted. An actor without a file noted nothing, but there is no run without
// its setting.
func Read(dir string) (*Run, error) {
	r := &Run{}
	var settings []Setting
	err := errors.Join(
		read(dir, SettingActor, &settings),
		read(dir, ProducerActor+"*", &r.Writes),
		read(dir, ReceiverActor, &r.Deliveries),
		read(dir, NemesisActor, &r.Faults),
		read(dir, OperatorActor, &r.Actions),
		read(dir, CursorActor, &r.Moves),
		read(dir, WatchActor, &r.Told),
		read(dir, HoldsActor, &r.Holds),
		read(dir, LettersActor, &r.Letters),
		read(dir, RowsActor, &r.Rows),
		read(dir, AppliedActor, &r.Applied),
		read(dir, EndActor, &r.Ends),
		read(dir, BeatsActor, &r.Beats),
		readCell(filepath.Join(dir, CellDir), &r.Cell))
	if err == nil && len(settings) != 1 {
		err = fmt.Errorf("there are %d settings in %s, not one: is it the directory of a run?", len(settings), dir)
	}
	if err != nil {
		return nil, fmt.Errorf("read a history: %w", err)
	}
	r.Setting = settings[0]
	return r, nil
}

func read[T any](dir, actor string, entries *[]T) error {
	paths, err := filepath.Glob(filepath.Join(dir, actor+suffix))
	if err != nil {
		return err
	}
	slices.Sort(paths)
	for _, path := range paths {
		if err := readFile(path, entries); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func readFile[T any](path string, entries *[]T) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	for {
		var entry T
		err := decoder.Decode(&entry)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		*entries = append(*entries, entry)
	}
}
