package replaycall_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
)

// subject answers as a test says, and counts.
type subject struct {
	says    compensation.Result
	arrived bool
	may     bool
	err     error

	queried, called int
	number, key     string
}

func (s *subject) Query(_ context.Context, _ compensation.Item, p replaycall.Payload) (compensation.Result, bool) {
	s.queried++
	s.number = p.Reference
	return s.says, s.arrived
}

func (s *subject) MayRepeat(context.Context, compensation.Item, replaycall.Payload) (bool, error) {
	return s.may, s.err
}

func (s *subject) Call(_ context.Context, _ compensation.Item, p replaycall.Payload) compensation.Result {
	s.called++
	s.key = p.Key
	return compensation.Succeeded("it took it")
}

const payload = `{"supplier":"sp-main","op":"refund","reference":"R1","params":{"amount":5},"key":"k-1"}`

// A call is repeated only if the supplier says that it never arrived and the object allows it:
// after any other answer money would move twice.
func TestACallIsRepeatedOnlyWhereItNeverArrived(t *testing.T) {
	t.Parallel()
	unknown := compensation.Later(compensation.SupplierUnknown, "garbage")
	for name, c := range map[string]struct {
		s      subject
		called int
		want   compensation.Class
	}{
		"it succeeded": {subject{says: compensation.Succeeded("refunded"), arrived: true, may: true}, 0, compensation.OK},
		"unknown": {
			subject{says: unknown, arrived: true, may: true},
			0,
			compensation.Class(compensation.SupplierUnknown),
		},
		"it never arrived":           {subject{says: unknown, may: true}, 1, compensation.OK},
		"it may not be repeated yet": {subject{says: unknown}, 0, compensation.Class(compensation.SupplierUnknown)},
		"nobody can say": {
			subject{says: unknown, may: true, err: errors.New("locked")},
			0,
			compensation.Class(compensation.Database),
		},
	} {
		got := replaycall.Kind(replaycall.Subjects{"refund": &c.s}).Run(t.Context(), compensation.Item{Payload: json.RawMessage(payload)})
		if got.Class != c.want || c.s.queried != 1 || c.s.called != c.called || c.s.number != "R1" || c.called == 1 && c.s.key != "k-1" {
			t.Errorf("%s: %+v after %+v", name, got, c.s)
		}
	}
}

func TestACallIsOfAKnownKind(t *testing.T) {
	t.Parallel()
	kind := replaycall.Kind(replaycall.Subjects{"refund": &subject{}})
	if err := kind.Check(json.RawMessage(payload)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		`{}`, `{"supplier":"sp-main","op":"payout","reference":"R1"}`, `{"op":"refund","reference":"R1"}`,
		`{"supplier":"sp-main","op":"refund"}`, `"x"`,
	} {
		if kind.Check(json.RawMessage(bad)) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
