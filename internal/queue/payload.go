package queue

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

// Nudge names a delivery to look at.
type Nudge struct {
	Delivery, Merchant int64
	At                 int64 // not before, Unix microseconds; 0 means now
}

// maxPayload bounds what is decoded: 64 nudges take at most 4 KiB.
const maxPayload = 8 << 10

// maxBucket is the last second of the year 9999.
const maxBucket = 253402300799

// ErrPoisoned means that a task holds what this program never writes. A handler
// returns it as it is: it tells asynq not to try the task again.
var ErrPoisoned = fmt.Errorf("poisoned task: %w", asynq.SkipRetry)

// encodeNudges writes one payload per Batch: [[delivery,merchant,at],…].
func encodeNudges(nudges []Nudge) [][]byte {
	var payloads [][]byte
	for len(nudges) > 0 {
		n := min(len(nudges), Batch)
		payload := make([]byte, 0, 48*n)
		for i, nudge := range nudges[:n] {
			payload = append(payload, separator(i)...)
			payload = append(payload, '[')
			payload = strconv.AppendInt(payload, nudge.Delivery, 10)
			payload = append(payload, ',')
			payload = strconv.AppendInt(payload, nudge.Merchant, 10)
			payload = append(payload, ',')
			payload = strconv.AppendInt(payload, nudge.At, 10)
			payload = append(payload, ']')
		}
		payloads = append(payloads, append(payload, ']'))
		nudges = nudges[n:]
	}
	return payloads
}

// encodeIDs writes one payload per Batch: [id,…].
func encodeIDs(ids []int64) [][]byte {
	var payloads [][]byte
	for len(ids) > 0 {
		n := min(len(ids), Batch)
		payload := make([]byte, 0, 20*n)
		for i, id := range ids[:n] {
			payload = append(payload, separator(i)...)
			payload = strconv.AppendInt(payload, id, 10)
		}
		payloads = append(payloads, append(payload, ']'))
		ids = ids[n:]
	}
	return payloads
}

// separator opens a list before its first element.
func separator(i int) string {
	if i == 0 {
		return "["
	}
	return ","
}

// encodeBucket writes the second as a number.
func encodeBucket(second time.Time) []byte {
	return strconv.AppendInt(nil, second.Unix(), 10)
}

// DecodeNudges reads a TaskNotify. Its errors are ErrPoisoned, here and below.
func DecodeNudges(task *asynq.Task) ([]Nudge, error) {
	var rows [][]int64
	if err := decode(task, &rows); err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows) > Batch {
		return nil, fmt.Errorf("%w: %d nudges", ErrPoisoned, len(rows))
	}
	nudges := make([]Nudge, len(rows))
	for i, row := range rows {
		if len(row) != 3 || row[0] <= 0 || row[1] <= 0 || row[2] < 0 {
			return nil, fmt.Errorf("%w: nudge %d is %v", ErrPoisoned, i, row[:min(len(row), 3)])
		}
		nudges[i] = Nudge{Delivery: row[0], Merchant: row[1], At: row[2]}
	}
	return nudges, nil
}

// DecodeIDs reads a TaskCompensate, TaskSweep or TaskAlert.
func DecodeIDs(task *asynq.Task) ([]int64, error) {
	var ids []int64
	if err := decode(task, &ids); err != nil {
		return nil, err
	}
	if len(ids) == 0 || len(ids) > Batch {
		return nil, fmt.Errorf("%w: %d ids", ErrPoisoned, len(ids))
	}
	for i, id := range ids {
		if id <= 0 {
			return nil, fmt.Errorf("%w: id %d is %d", ErrPoisoned, i, id)
		}
	}
	return ids, nil
}

// DecodeBucket reads a TaskExpire: the second up to which orders have expired.
// Whether they have is judged by the database's clock.
func DecodeBucket(task *asynq.Task) (time.Time, error) {
	var second int64
	if err := decode(task, &second); err != nil {
		return time.Time{}, err
	}
	if second <= 0 || second > maxBucket {
		return time.Time{}, fmt.Errorf("%w: second %d", ErrPoisoned, second)
	}
	return time.Unix(second, 0).UTC(), nil
}

// decode shows nothing of a payload in its error: a task that we did not write
// can hold anything.
func decode(task *asynq.Task, into any) error {
	if n := len(task.Payload()); n > maxPayload {
		return fmt.Errorf("%w: %d bytes", ErrPoisoned, n)
	}
	if err := json.Unmarshal(task.Payload(), into); err != nil {
		return fmt.Errorf("%w: not the JSON of a %s", ErrPoisoned, printable(task.Type()))
	}
	return nil
}

// printable bounds a task type that came from outside.
func printable(kind string) string {
	if len(kind) > 32 {
		kind = kind[:32]
	}
	return strconv.QuoteToASCII(kind)
}
