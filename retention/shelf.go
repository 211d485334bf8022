package retention

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Shelf is where archive files go. Directory is one; module stores/buckets has object stores. Calls end with their
// context.
type Shelf interface {
	// Put stores content under a name, and replaces what was there. When it returns nil, a crash does not lose it.
	Put(ctx context.Context, name string, content []byte) error
	// List returns the names that begin with prefix.
	List(ctx context.Context, prefix string) ([]string, error)
	// Remove removes a file. It is no error if there is none.
	Remove(ctx context.Context, name string) error
}

// shelf returns where ModeFiles writes.
func (c Config) shelf() (Shelf, error) {
	if c.Shelf == nil && isURL(c.Rule.Directory) {
		return nil, fmt.Errorf("directory %s is the URL of an object store: open it, and give it as Config.Shelf", c.Rule.Directory)
	}
	if c.Shelf == nil {
		return Directory(c.Rule.Directory), nil
	}
	return c.Shelf, nil
}

// shelfTimeout bounds what one batch asks of its shelf. The transaction is open meanwhile, and the server ends it after
// 10 s without a statement: see operator.Prune.
const shelfTimeout = 8 * time.Second

const (
	suffix       = ".jsonl.gz"
	maxNameBytes = 255 // of a file, in common file systems
	digestBytes  = 8
	// Each name has three commas, the digest of its lines, and the suffix. The rest is for the table and two positions.
	roomForNames = maxNameBytes - 3 - 2*digestBytes - len(suffix)
	maxTable     = 80
)

// fileName names a file by its table, by the positions of its first and last row, and by the digest of its lines: no
// file is replaced by one with other lines. What is escaped has no comma.
func fileName(table string, first, last cursor.Position, digest string) string {
	return beginning(table, first) + fitting(string(last), roomForPosition(table)) + "," + digest + suffix
}

// beginning is how the names of files begin that have the same first row.
func beginning(table string, first cursor.Position) string {
	return fitting(table, maxTable) + "," + fitting(string(first), roomForPosition(table)) + ","
}

// roomForPosition depends on the table alone: the names of all its files begin in the same way.
func roomForPosition(table string) int { return (roomForNames - len(fitting(table, maxTable))) / 2 }

// fitting escapes a part of a name. Of one that is too long, it keeps the beginning, and adds "=" and a digest. What is
// escaped has no "=", so no other part looks like that.
func fitting(part string, room int) string {
	escaped := url.QueryEscape(part)
	if len(escaped) <= room {
		return escaped
	}
	sum := sha256.Sum256([]byte(part))
	end := "=" + hex.EncodeToString(sum[:digestBytes])
	begin := escaped[:room-len(end)]
	if i := strings.LastIndexByte(begin, '%'); i > len(begin)-len("%XX") { // a part of an escape
		begin = begin[:i]
	}
	return begin + end
}

// digestOf is the digest in the name of a file.
func digestOf(name string) string {
	return strings.TrimSuffix(name[strings.LastIndexByte(name, ',')+1:], suffix)
}

// file writes the rows of a stretch and then deletes them. It writes before it takes a lock that delivery would wait
// for. Rows that change in between are not what was written, so the transaction fails, and a later pass writes the
// file again.
func (p *pass) file(ctx context.Context, tx pgx.Tx, s table.Stretch) (table.Removed, error) {
	rows, err := p.pruning.Contents(ctx, tx, s)
	if err != nil || len(rows) == 0 {
		return table.Removed{}, err
	}
	if err := p.write(ctx, s, rows); err != nil {
		return table.Removed{}, fmt.Errorf("write an archive file, before its rows are deleted: %w", err)
	}
	removed, err := p.pruning.Take(ctx, tx, s)
	if err != nil {
		return table.Removed{}, err
	}
	if !sameRows(rows, removed.Contents) {
		return table.Removed{}, errors.New("rows changed while they were written to an archive file, so they were not deleted: the next pass writes them again")
	}
	return removed, nil
}

func sameRows(written, deleted [][]byte) bool {
	written = slices.Clone(written)
	slices.SortFunc(written, bytes.Compare)
	slices.SortFunc(deleted, bytes.Compare)
	return slices.EqualFunc(written, deleted, bytes.Equal)
}

// write stores a file of JSON lines. Then it removes those that have nothing but its first rows: an earlier attempt
// whose rows were not deleted has left them, before more rows became old. A file with another row stays, since it may
// be the only place of that row.
func (p *pass) write(ctx context.Context, s table.Stretch, rows [][]byte) error {
	content, digests, err := archived(rows)
	if err != nil {
		return err
	}
	name := fileName(p.pruning.Table(), s.First, s.Last, digests[len(rows)-1])
	ctx, cancel := context.WithTimeoutCause(ctx, shelfTimeout, fmt.Errorf("the store took longer than %v", shelfTimeout))
	defer cancel()
	return overdue(ctx, p.put(ctx, beginning(p.pruning.Table(), s.First), name, content, digests))
}

// put stores a file, and removes those among the ones with the same first row that have a part of it.
func (p *pass) put(ctx context.Context, prefix, name string, content []byte, digests []string) error {
	if err := p.shelf.Put(ctx, name, content); err != nil {
		return err
	}
	earlier, err := p.shelf.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, other := range earlier {
		if other == name || !slices.Contains(digests, digestOf(other)) {
			continue
		}
		if err := p.shelf.Remove(ctx, other); err != nil {
			return err
		}
	}
	return nil
}

// overdue names a deadline of ours. A directory that hangs is named by its own error.
func overdue(ctx context.Context, err error) error {
	var hangs *hangsError
	if err != nil && ctx.Err() != nil && !errors.As(err, &hangs) && !errors.Is(context.Cause(ctx), context.Canceled) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// archived makes a file of JSON lines. The digests are those of its first line, of its first two, and so on.
func archived(rows [][]byte) (content []byte, digests []string, err error) {
	var b bytes.Buffer
	packed, lines := gzip.NewWriter(&b), sha256.New()
	both := io.MultiWriter(packed, lines)
	for _, row := range rows {
		if _, err := both.Write(line(row)); err != nil {
			return nil, nil, err
		}
		digests = append(digests, hex.EncodeToString(lines.Sum(nil)[:digestBytes]))
	}
	if err := packed.Close(); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), digests, nil
}

// line makes one line of a row. A column of type json keeps the line breaks between its tokens. A string of JSON has none.
func line(row []byte) []byte {
	l := append(bytes.Clone(row), '\n')
	for i, c := range row {
		if c == '\n' || c == '\r' {
			l[i] = ' '
		}
	}
	return l
}
