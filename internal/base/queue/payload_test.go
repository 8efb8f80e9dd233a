package queue

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"pgregory.net/rapid"
)

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	t.Parallel()
	positive := rapid.Int64Range(1, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(positive, 0, 3*Batch).Draw(t, "ids")
		want := make([]Nudge, len(ids))
		for i, id := range ids {
			want[i] = Nudge{Delivery: id, Recipient: positive.Draw(t, "merchant"), At: rapid.Int64Range(0, math.MaxInt64).Draw(t, "at")}
		}
		var got []Nudge
		for _, payload := range encodeNudges(want) {
			part, err := DecodeNudges(asynq.NewTask(TaskNotify, payload))
			if err != nil || len(part) > Batch {
				t.Fatalf("%d nudges, %v", len(part), err)
			}
			got = append(got, part...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v -> %v", want, got)
		}
	})
}

func TestPoisonedPayloadsStopTheirRetries(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", "null", "{}", "[]", "[[]]", "[0]", "[-1]", "[1.5]", `["1"]`, "[9223372036854775808]", "[1] x", "[null]",
		"[[1,2]]", "[[1,2,3,4]]", "[[0,1,0]]", "[[1,0,0]]", "[[1,1,-1]]", "[[1,1,null]]"[:10], "\x00", "0", "-1", "1.5",
		strings.Repeat("[", maxPayload), strings.Repeat(" ", maxPayload) + "[1]",
		"[" + strings.Repeat("[1,1,0],", Batch) + "[1,1,0]]",
	} {
		task := asynq.NewTask(strings.Repeat("x", 99), []byte(payload))
		if _, err := DecodeNudges(task); !errors.Is(err, ErrPoisoned) || !errors.Is(err, asynq.SkipRetry) {
			t.Errorf("%.40q: %v", payload, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.40q: an error of %d characters", payload, len(err.Error()))
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"[[1,2,3]]", "[1,2]", "1700000000", "[[1,2,3],[4,5,0]]", "null", "[[]]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		task := asynq.NewTask("t", payload)
		list, err := DecodeNudges(task)
		if (err == nil) != (len(list) > 0) || len(list) > Batch || err != nil && !errors.Is(err, asynq.SkipRetry) {
			t.Fatalf("%v, %v", list, err)
		}
	})
}
