package queue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/hibiken/asynq"
)

// Nudge has the id of a due delivery and its recipient, or of a compensation and its lane.
type Nudge struct {
	Delivery, Recipient int64
	At                  int64 // not before, Unix microseconds; 0 means now
}

// maxPayload bounds what is decoded: 64 nudges take at most 4 KiB.
const maxPayload = 8 << 10

// ErrPoisoned means that a task has a payload that this program never writes. A handler
// returns it unchanged, so that asynq does not retry the task.
var ErrPoisoned = fmt.Errorf("poisoned task: %w", asynq.SkipRetry)

// encodeNudges writes one payload per Batch: [[delivery,recipient,at],…].
func encodeNudges(nudges []Nudge) (payloads [][]byte) {
	for batch := range slices.Chunk(nudges, Batch) {
		rows := make([][3]int64, len(batch))
		for i, n := range batch {
			rows[i] = [3]int64{n.Delivery, n.Recipient, n.At}
		}
		payload, _ := json.Marshal(rows) // numbers can always be encoded
		payloads = append(payloads, payload)
	}
	return payloads
}

// DecodeNudges reads the payload of encodeNudges. Its errors are ErrPoisoned. Of the payload
// they show only numbers: a task that we did not write can contain anything.
func DecodeNudges(task *asynq.Task) ([]Nudge, error) {
	if n := len(task.Payload()); n > maxPayload {
		return nil, fmt.Errorf("%w: %d bytes", ErrPoisoned, n)
	}
	var rows [][]int64
	if err := json.Unmarshal(task.Payload(), &rows); err != nil {
		return nil, fmt.Errorf("%w: not the JSON of a %s", ErrPoisoned, printable(task.Type()))
	}
	if len(rows) == 0 || len(rows) > Batch {
		return nil, fmt.Errorf("%w: %d nudges", ErrPoisoned, len(rows))
	}
	nudges := make([]Nudge, len(rows))
	for i, row := range rows {
		if len(row) != 3 || row[0] <= 0 || row[1] <= 0 || row[2] < 0 {
			return nil, fmt.Errorf("%w: nudge %d is %v", ErrPoisoned, i, row[:min(len(row), 3)])
		}
		nudges[i] = Nudge{Delivery: row[0], Recipient: row[1], At: row[2]}
	}
	return nudges, nil
}

// printable bounds and quotes a task type that came from outside.
func printable(kind string) string {
	if len(kind) > 32 {
		kind = kind[:32]
	}
	return strconv.QuoteToASCII(kind)
}
