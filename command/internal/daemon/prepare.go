package daemon

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/mapping"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/payload"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/upcast"
)

// mappingTime is how long a mapping may run for one record. One that ends takes a few microseconds.
const mappingTime = 10 * time.Second

// prepare returns how the records of a process are made ready for its sink; nil if they go out as they are.
func (p Process) prepare() (processor.Prepare, error) {
	limit := p.filled().Source.MaxRecordBytes
	var steps []processor.Prepare
	if p.Claims != "" {
		steps = append(steps, payload.Resolve(p.claimStore(), limit))
	}
	if p.Decompress {
		steps = append(steps, payload.Decompress(limit))
	}
	if len(p.Upcast) > 0 {
		chains, err := upcasters(p.Upcast, limit)
		if err != nil {
			return nil, err
		}
		steps = append(steps, chains.Prepare)
	}
	if len(steps) == 0 {
		return nil, nil
	}
	return payload.Chain(steps...), nil
}

// upcasters returns the chains of some mappings, whose results have at most limit bytes.
func upcasters(programs map[string]string, limit int) (*upcast.Upcasters, error) {
	var all []upcast.Upcaster
	for typ, program := range programs {
		one, err := upcaster(typ, program, limit)
		if err != nil {
			return nil, fmt.Errorf("upcast %q: %w", typ, err)
		}
		all = append(all, one)
	}
	return upcast.New(all...)
}

func upcaster(typ, program string, limit int) (upcast.Upcaster, error) {
	name, version := upcast.Split(typ)
	if at := strings.LastIndexByte(name, '@'); at > 0 && typ == name && strings.Trim(name[at+1:], "0123456789") == "" {
		return upcast.Upcaster{}, fmt.Errorf("its version is not a number from 1 on: write %s@1", name[:at])
	}
	if typ != name+"@"+strconv.Itoa(version) {
		return upcast.Upcaster{}, fmt.Errorf("it has no version: write %s@1 for records that have none", name)
	}
	up, err := mapping.Compile(program, mapping.Bounds{Time: mappingTime, Bytes: limit})
	return upcast.From(name, version, up), err
}

// parseUpcast reports each mapping that is not one, at its place, and then what is wrong with all of them.
func parseUpcast(n yamlfile.Node) map[string]string {
	m, programs := n.AnyMapping(), map[string]string{}
	for _, typ := range m.Names() {
		node, _ := m.Get(typ)
		programs[typ] = node.Text()
		if _, err := upcaster(typ, programs[typ], 0); err != nil && node.Sound() {
			node.Refuse(err)
		}
	}
	if _, err := upcasters(programs, 0); err != nil && n.Sound() {
		n.Refuse(errors.New(strings.TrimPrefix(err.Error(), "upcast: "))) // the path has that word
	}
	return programs
}
