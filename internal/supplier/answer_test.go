package supplier

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// told answers every request, and keeps the last one.
type told struct {
	x    Exchange
	got  *http.Request
	body string
	end  func()
}

func (c *told) Do(r *http.Request) Exchange {
	body, _ := io.ReadAll(r.Body)
	c.got, c.body = r, string(body)
	if c.end != nil {
		c.end()
	}
	return c.x
}

func TestSendKeepsWhatOperatorsMaySee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call Call
		want string
	}{
		"body": {Call{Method: "POST", URL: "https://s.example/v1/pay?a=b", Body: []byte("x=1")}, "POST /v1/pay?a=b\n\nx=1"},
		"bare": {Call{Method: "GET", URL: "https://s.example"}, "GET /"},
		"shown": {
			Call{Method: "POST", URL: "https://s.example/g?sign=canary", Body: []byte("canary"), Shown: "/g\n\nbiz={}"},
			"POST /g\n\nbiz={}",
		},
	} {
		c.call.Header = http.Header{"Authorization": {"canary"}}
		line := &told{x: Exchange{Status: 200, Body: []byte("ok")}}
		x, err := c.call.Send(t.Context(), line)
		if err != nil || string(x.Request) != c.want || x.Class != "" || x.At.IsZero() || strings.Contains(string(x.Request), "canary") {
			t.Errorf("%s: %v %+v %q", name, err, x, x.Request)
		}
		if line.got.URL.String() != c.call.URL || line.body != string(c.call.Body) || line.got.Header.Get("Authorization") != "canary" {
			t.Errorf("%s: sent %s %q", name, line.got.URL, line.body)
		}
	}
}

func TestSendBelievesNoLateOrLongAnswer(t *testing.T) {
	t.Parallel()
	call := Call{Method: "GET", URL: "https://s.example/"}
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	ok := Exchange{Status: 200, Body: []byte("ok"), At: at}
	if x, err := call.Send(t.Context(), &told{x: ok}); err != nil || x.At != at {
		t.Errorf("the moment of the answer: %v %v", err, x.At)
	}
	ctx, end := context.WithCancel(t.Context())
	if x, err := call.Send(ctx, &told{x: ok, end: end}); err == nil || x.Class != ClassTimeout || string(x.Body) != "ok" {
		t.Errorf("late: %v %+v", err, x)
	}
	line := &told{x: ok}
	if x, err := call.Send(ctx, line); err == nil || x.Class != ClassTimeout || line.got != nil {
		t.Errorf("after the end: %v %+v", err, x)
	}
	ok.Body = make([]byte, MaxAnswer)
	if x, err := call.Send(t.Context(), &told{x: ok}); err != nil || len(x.Body) != MaxAnswer {
		t.Errorf("just as long: %v, %d", err, len(x.Body))
	}
	ok.Body = make([]byte, MaxAnswer+1)
	if x, err := call.Send(t.Context(), &told{x: ok}); err == nil || x.Class != ClassBadAnswer || len(x.Body) != MaxAnswer {
		t.Errorf("too long: %v, %d, %s", err, len(x.Body), x.Class)
	}
	if x, err := call.Send(t.Context(), &told{x: Exchange{Class: ClassTLS}}); err == nil || x.Class != ClassTLS {
		t.Errorf("no answer: %v %+v", err, x)
	}
	call.Method = "no method"
	if x, err := call.Send(t.Context(), line); err == nil || x.Class != ClassConnect || line.got != nil {
		t.Errorf("a request that cannot be made: %v %+v", err, x)
	}
}

func TestJudgeBelievesOnlyWhatTheTableHas(t *testing.T) {
	t.Parallel()
	ref := Ref{Reference: "O1"}
	says := Callback{OrderRef: "O1", RawStatus: "W", Amount: 5, Currency: "CNY", Status: Disputed, Final: true}
	for name, c := range map[string]struct {
		m      Meaning
		change func(*Callback)
		state  AnswerState
		status Status
		class  Class
	}{
		"paid":              {Meaning{Status: Paid}, nil, AnswerPaid, Paid, ClassOK},
		"refunded":          {Meaning{Status: Unknown, Refunded: true}, nil, AnswerPaid, Paid, ClassOK},
		"closed":            {Meaning{Status: Closed, Reverses: true}, nil, AnswerClosed, Closed, ClassOK},
		"failed for good":   {Meaning{Status: Failed, Final: true}, nil, AnswerFailed, Failed, ClassOK},
		"one try failed":    {Meaning{Status: Failed}, nil, AnswerPaying, Other, ClassOK},
		"paying":            {Meaning{Status: Other, Answer: AnswerPaying}, nil, AnswerPaying, Other, ClassOK},
		"not found":         {Meaning{Status: Unknown, Answer: AnswerNotFound}, nil, AnswerNotFound, Other, ClassOK},
		"harmless":          {Meaning{Status: Other}, nil, AnswerUnknown, "", ClassUnknown},
		"disputed":          {Meaning{Status: Disputed}, nil, AnswerUnknown, "", ClassUnknown},
		"a refund":          {Meaning{Status: Refunded}, nil, AnswerUnknown, "", ClassUnknown},
		"no word":           {Words{}.Of("W"), nil, AnswerUnknown, "", ClassUnknown},
		"another order":     {Meaning{Status: Paid}, func(c *Callback) { c.OrderRef = "O2" }, AnswerUnknown, "", ClassBadAnswer},
		"no order":          {Meaning{Status: Closed}, func(c *Callback) { c.OrderRef = "" }, AnswerUnknown, "", ClassBadAnswer},
		"paid nothing":      {Meaning{Status: Paid}, func(c *Callback) { c.Amount = 0 }, AnswerUnknown, "", ClassBadAnswer},
		"paid, no currency": {Meaning{Status: Paid}, func(c *Callback) { c.Currency = "" }, AnswerUnknown, "", ClassBadAnswer},
		"closed, no amount": {Meaning{Status: Closed}, func(c *Callback) { c.Amount, c.Currency = 0, "" }, AnswerClosed, Closed, ClassOK},
	} {
		says := says
		if c.change != nil {
			c.change(&says)
		}
		got := Exchange{At: time.Now()}.Judge(ref, c.m, says)
		if got.State != c.state || got.Says.Status != c.status || got.Exchange.Class != c.class || got.Refunded() != (name == "refunded") ||
			got.Says.TotalAt.IsZero() == got.Refunded() || got.Says.Final != (c.state == AnswerFailed) || got.Says.Reverses != c.m.Reverses {
			t.Errorf("%s: %+v", name, got)
		}
		if unknown := got.State == AnswerUnknown; unknown == (got.Reason.Code == "") || unknown == (got.Says.OrderRef != "") {
			t.Errorf("%s: reason %q, says %+v", name, got.Reason.Code, got.Says)
		}
	}
}

func TestMaskHidesASecretEverywhere(t *testing.T) {
	t.Parallel()
	x := Exchange{Request: []byte("a canary b canary"), Body: []byte("canary")}
	if got := x.Mask("canary"); string(got.Request) != "a *** b ***" || string(got.Body) != "***" {
		t.Errorf("%s %s", got.Request, got.Body)
	}
	if got := x.Mask(""); string(got.Request) != "a canary b canary" {
		t.Errorf("%s", got.Request)
	}
}
