package notify

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

const (
	// acksFile is the size in bytes of one of the two files: more than all attempts that can wait
	// for their commit take.
	acksFile = 4 << 20
	// ackHead is the length and the checksum before a record.
	ackHead = 8
	// recoverPage bounds the rows per statement.
	recoverPage = 500
)

// Acks remembers in the data folder which attempts recipients have acknowledged, until their
// results are committed. What a process has written to a file survives its death, so a node that
// is killed in between records these results in its next life instead of sending again. Only a
// machine that dies loses them, and then a notification arrives once more.
//
// There are two files. When one is full, the other one is emptied: by then its results have long
// been committed.
type Acks struct {
	log   *slog.Logger
	limit int64

	mu      sync.Mutex
	files   [2]*os.File // nil after Close
	current int
	size    int64
	broken  bool
	earlier map[int64]Attempt // of the life before, by delivery; nil after Recover
}

// OpenAcks opens the files in the folder and reads what the life before has left.
func OpenAcks(folder string, log *slog.Logger) (*Acks, error) { return openAcks(folder, acksFile, log) }

func openAcks(folder string, limit int64, log *slog.Logger) (_ *Acks, err error) {
	a := &Acks{log: log, limit: limit, earlier: map[int64]Attempt{}}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	var sizes [2]int64
	for i := range a.files {
		name := filepath.Join(folder, fmt.Sprintf("acks.%d", i))
		if a.files[i], err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, fmt.Errorf("open the acknowledged attempts: %w", err)
		}
		all, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the acknowledged attempts: %w", err)
		}
		sizes[i] = a.read(all)
	}
	if sizes[0] >= limit {
		a.current = 1
	}
	a.size = sizes[a.current]
	return a, nil
}

// read keeps the records of a file, and returns where the last whole one ends.
func (a *Acks) read(all []byte) (end int64) {
	for rest := all; len(rest) >= ackHead; rest = all[end:] {
		length := int64(binary.LittleEndian.Uint32(rest))
		if length > int64(len(rest)-ackHead) {
			break
		}
		record := rest[ackHead : ackHead+length]
		var x Attempt
		if crc32.ChecksumIEEE(record) != binary.LittleEndian.Uint32(rest[4:]) || json.Unmarshal(record, &x) != nil {
			break
		}
		if a.earlier[x.DeliveryID].Number <= x.Number {
			a.earlier[x.DeliveryID] = x
		}
		end += ackHead + length
	}
	return end
}

// Close closes the files.
func (a *Acks) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, f := range a.files {
		if f != nil {
			f.Close()
			a.files[i] = nil
		}
	}
}

// note remembers acknowledged attempts; nil = does nothing. A failure is logged once: the results
// are committed all the same.
func (a *Acks) note(all []*outcome) {
	if a == nil {
		return
	}
	records := recordsOf(all)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.files[a.current] == nil {
		return
	}
	if err := a.append(records); err != nil && !a.broken {
		a.broken = true
		a.log.Warn("acknowledged attempts cannot be remembered until their commit; a killed node sends them again", "error", err)
	}
}

// recordsOf are the records of acknowledged attempts.
func recordsOf(all []*outcome) []byte {
	var records bytes.Buffer
	for _, o := range all {
		record, err := json.Marshal(&o.attempt)
		if err != nil {
			continue
		}
		var head [ackHead]byte
		binary.LittleEndian.PutUint32(head[:], uint32(len(record)))
		binary.LittleEndian.PutUint32(head[4:], crc32.ChecksumIEEE(record))
		records.Write(head[:])
		records.Write(record)
	}
	return records.Bytes()
}

// turn empties the other file and continues there.
func (a *Acks) turn() error {
	other := 1 - a.current
	if err := a.files[other].Truncate(0); err != nil {
		return err
	}
	a.current, a.size = other, 0
	return nil
}

func (a *Acks) append(records []byte) error {
	if a.size >= a.limit {
		if err := a.turn(); err != nil {
			return err
		}
	}
	return a.write(records)
}

func (a *Acks) write(records []byte) error {
	n, err := a.files[a.current].WriteAt(records, a.size)
	if err == nil {
		a.size += int64(n)
	}
	return err
}

// Recovered are attempts of a node's life before that were acknowledged and not committed.
type Recovered []*outcome

// Recover takes over the deliveries of boots that have ended whose attempts were acknowledged.
// They stay claims, of this boot, until Dispatcher.Finish has written their results. Call it
// before ReleaseLeases, which would have them sent again.
func (a *Acks) Recover(ctx context.Context, d *db.DB, boots []int64) (all Recovered, err error) {
	earlier := a.earlier
	a.earlier = nil // some megabytes that nothing needs any more
	defer func() {
		if err == nil {
			a.keep(all)
		}
	}()
	if len(boots) == 0 || len(earlier) == 0 {
		return nil, nil
	}
	for _, which := range leased {
		var open []struct{ ID, Attempts int64 }
		err := d.Read.NewRaw("SELECT id, attempts FROM deliveries WHERE "+which+" AND status = ? AND lease_owner IN (?)", Sending,
			bun.List(boots)).Scan(ctx, &open)
		if err != nil {
			return nil, fmt.Errorf("look for acknowledged attempts: %w", err)
		}
		var ids []int64
		for _, x := range open {
			if ack, ok := earlier[x.ID]; ok && ack.Number == x.Attempts {
				ids = append(ids, x.ID)
			}
		}
		for len(ids) > 0 {
			n := min(len(ids), recoverPage)
			var rows []claimed
			err := d.NewRaw("UPDATE deliveries SET lease_owner = ? WHERE id IN (?) AND status = ? AND lease_owner IN (?)"+claimedColumns, d.Boot(),
				bun.List(ids[:n]), Sending, bun.List(boots)).Scan(ctx, &rows)
			if err != nil {
				return nil, fmt.Errorf("take over acknowledged attempts: %w", err)
			}
			for _, c := range rows {
				all = append(all, &outcome{claimed: c, attempt: earlier[c.ID], status: Delivered, generation: noGeneration})
			}
			ids = ids[n:]
		}
	}
	return all, nil
}

// keep empties the files of everything but what is left to write, so that each start reads only
// what the life before has left. A file is emptied after the other one has what is kept: this
// process, too, may be killed at any instruction. What cannot be emptied is read once more.
func (a *Acks) keep(left Recovered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	records := recordsOf(left)
	err := a.write(records)
	if err == nil {
		err = a.turn()
	}
	if err == nil {
		err = a.write(records)
	}
	if err == nil {
		err = a.files[1-a.current].Truncate(0)
	}
	if err != nil {
		a.log.Warn("the files of acknowledged attempts cannot be emptied", "error", err)
	}
}

// Finish writes the results of attempts that an earlier life of this node made.
func (d *Dispatcher) Finish(all Recovered) {
	for _, o := range all {
		d.worker.Go(func(context.Context) { d.worker.Write(o.claimed.ID, o) })
	}
	if len(all) > 0 {
		d.o.Log.Info("recover", "acknowledged_attempts", len(all))
	}
}
