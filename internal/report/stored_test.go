package report

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A delta is read as it was written; by a node of another version without what only one of them
// knows.
func TestADeltaIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	x := NewDelta(1_790_000_000_000_000)
	x.Attempt(7, OK, 30*time.Millisecond)
	x.Attempt(7, Failed, time.Hour)
	x.Attempt(8, Retried, 3*time.Second)
	x.Lag(7, 2*time.Second)
	x.Callback(1, "paid", 2)
	x.Refused(1, "bad_signature", 1)
	x.Unnotified(7, "CNY", -1, -1999)
	x.Raised(x.now, "CNY", 1999)
	x.Notified(x.now-time.Hour.Microseconds(), "USD", 5)
	x.Failure("http_500", "CNY", 1999, true)
	x.Created(x.now, 7, 1, "CNY", 1999)
	x.Call(1, "query", "ok", 40*time.Millisecond)
	x.Unstored = true
	x.now = 0
	stored := x.text()
	later := strings.ReplaceAll(stored, "\n", "\tlater\n") + "z\t1\tlater\n"
	got := Delta{Minute: 5, Orders: []ordersSum{{Minute: 5, Currency: "EUR", Raised: 5}}} // of the row before
	for _, body := range []string{stored, later} {
		if err := got.parse(body); err != nil || !reflect.DeepEqual(got, *x) {
			t.Errorf("%s is read as %+v, %v", body, got, err)
		}
	}
	if err := got.parse("m\t60000000\nc\t1\tpaid\n"); err != nil || got.Minute != 60_000_000 || got.Callbacks[0] != (callbackSum{1, "paid", 0}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, broken := range []string{"m\tx\n", "c\t1\tpaid\t2e3\n", "a\t1\t\t\t\t\t1 x\n", "n\t\tCNY\t\t\t\t\t" + strings.Repeat("1 ", 40) + "\n"} {
		if err := got.parse(broken); err == nil {
			t.Errorf("%q is read as %+v", broken, got)
		}
	}
}
