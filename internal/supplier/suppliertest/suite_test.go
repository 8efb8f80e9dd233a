package suppliertest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/mask"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/supplier"
)

// The suite is tested on a supplier of its own, and on adapters to it that each leave one check
// out: the suite has to fail each of them.

const (
	toyKey    = "canary-key-of-the-toy-supplier"
	toyWindow = 5 * time.Minute
)

// careless names the check that an adapter leaves out.
type careless string

var _ = mask.Declare("order trade state amount shop", "Toy-Sign Toy-Time")

type toy struct {
	key  string
	skip careless
}

func (a *toy) Parse(req *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	if err := a.verify(req, t); err != nil {
		return supplier.Callback{}, err
	}
	at, _ := strconv.ParseInt(req.Header.Get("Toy-Time"), 10, 64)
	if err := a.window(t, time.Unix(at, 0), req.ReceivedAt); err != nil {
		return supplier.Callback{}, err
	}
	var m struct {
		Order, Trade, State, Shop string
		Amount                    json.RawMessage
	}
	decode := supplier.DecodeJSON
	if a.skip == "doubled names" {
		decode = json.Unmarshal
	}
	if err := decode(req.Body, &m); err != nil {
		return a.unreadable(t, err)
	}
	amount, err := money.ParseMinor(string(m.Amount))
	if a.skip == "number form" {
		var f float64
		err = json.Unmarshal(m.Amount, &f)
		amount = int64(f)
	}
	if err != nil {
		return a.unreadable(t, err)
	}
	if a.skip == "amount" {
		amount = 1999
	}
	got := supplier.Callback{
		EventKey: m.Trade + ":" + m.State, OrderRef: m.Order, TradeNo: m.Trade, RawStatus: m.State,
		Status: map[string]supplier.Status{"PAID": supplier.Paid, "FAILED": supplier.Failed, "WAIT": supplier.Other}[m.State],
		Amount: amount, Currency: "CNY", Identity: map[string]string{"shop": m.Shop},
	}
	if got.Status == "" {
		got.Status = supplier.Unknown
	}
	a.blunder(&got, req, t)
	return got, nil
}

func (a *toy) verify(req *supplier.Request, t *supplier.Trace) error {
	given, err := hex.DecodeString(req.Header.Get("Toy-Sign"))
	want := toySign(a.key, req.Header.Get("Toy-Time"), req.Body)
	ok := err == nil && hmac.Equal(given, want)
	switch a.skip {
	case "signature":
		ok = true
	case "half of the signature":
		ok = len(given) >= 8 && string(given[:8]) == string(want[:8])
	case "signature where none is given":
		ok = ok || len(given) == 0
	case "time in the signed text":
		ok = err == nil && hmac.Equal(given, toySign(a.key, "", req.Body))
	}
	if a.skip == "trace" {
		t = nil
	}
	if !ok {
		t.Fail("signature", toyWords, "does not hold")
		return supplier.RefuseSignature(toyWords, "does not hold")
	}
	t.Pass("signature", toyHolds)
	return nil
}

// toyTexts are what the toy finds.
var (
	toyTexts text.Codes
	toyHolds = toyTexts.New("toy.holds", text.Text{ZH: "通过", EN: "holds"})
	toyWords = toyTexts.New("toy.words", text.Text{ZH: "%s", EN: "%s"})
)

func (a *toy) window(t *supplier.Trace, at, now time.Time) error {
	if a.skip == "the future" && at.After(now) || a.skip == "the past" && at.Before(now) {
		return nil
	}
	return supplier.CheckWindow(t, at, now, toyWindow)
}

func (a *toy) unreadable(t *supplier.Trace, err error) (supplier.Callback, error) {
	t.FailBy("content", err)
	return supplier.Callback{}, &supplier.Unreadable{Kind: "malformed", Result: supplier.Malformed, Reason: text.Of(err)}
}

// blunder makes the mistakes that are not a missing check.
func (a *toy) blunder(got *supplier.Callback, req *supplier.Request, t *supplier.Trace) {
	switch a.skip {
	case "unknown words":
		if got.Status == supplier.Unknown {
			got.Status = supplier.Other
		}
	case "harmless words":
		if got.Status == supplier.Other {
			got.Status = supplier.Unknown
		}
	case "state in the event key":
		got.EventKey = got.TradeNo
	case "payment in the event key":
		got.EventKey = got.RawStatus
	case "repeats":
		got.EventKey += req.Header.Get("Toy-Time")
	case "account":
		got.Identity = a.Identity()
	case "secrecy":
		t.Fail("debug", toyWords, a.key)
	case "the request is read only":
		req.Body[0] = ' '
	}
}

func (a *toy) Reply(r supplier.Result) supplier.Reply {
	if a.skip == "the answer to failure" {
		r = supplier.Taken
	}
	return toyReplies[r]
}
func (a *toy) Identity() map[string]string { return map[string]string{"shop": "S1"} }
func (a *toy) Account() string             { return "toy:S1" }

var toyReplies = map[supplier.Result]supplier.Reply{
	supplier.Taken:          {Status: 200, ContentType: "text/plain", Body: []byte("ok")},
	supplier.BadSignature:   {Status: 401, ContentType: "text/plain", Body: []byte("no")},
	supplier.Malformed:      {Status: 400, ContentType: "text/plain", Body: []byte("no")},
	supplier.Unavailable:    {Status: 503, ContentType: "text/plain", Body: []byte("no")},
	supplier.InternalFailed: {Status: 500, ContentType: "text/plain", Body: []byte("no")},
}

func toySign(key, at string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(at))
	mac.Write(body)
	return mac.Sum(nil)
}

func toySuite(skip careless) Suite {
	signsTime := skip != "time in the signed text"
	return Suite{
		Adapter:  &toy{key: toyKey, skip: skip},
		Stranger: &toy{key: "another key", skip: skip},
		Message: func(c Change) *supplier.Request {
			state := "state"
			if skip == "declarations" {
				state = "hue"
			}
			body := fmt.Sprintf(`{"order":%q,"trade":%q,%q:%q,"shop":%q,"amount":%s}`,
				cmp.Or(c.OrderRef, "O1"), cmp.Or(c.TradeNo, "T1"), state, cmp.Or(c.Status, "PAID"), cmp.Or(c.Account, "S1"),
				cmp.Or(c.Amount, "1999"))
			if c.Duplicate {
				body = strings.TrimSuffix(body, "}") + `,"order":"O2"}`
			}
			at := strconv.FormatInt(c.At().Unix(), 10)
			signed := at
			if !signsTime {
				signed = ""
			}
			sign := hex.EncodeToString(toySign(toyKey, signed, []byte(body)))
			if c.Tamper != nil {
				sign = c.Tamper(sign)
			}
			return &supplier.Request{
				Method: http.MethodPost, Path: "/callback/toy", Body: []byte(body),
				Header: http.Header{"Toy-Time": {at}, "Toy-Sign": {sign}},
			}
		},
		Want: supplier.Callback{
			EventKey: "T1:PAID", OrderRef: "O1", TradeNo: "T1", Status: supplier.Paid, RawStatus: "PAID",
			Amount: 1999, Currency: "CNY", Identity: map[string]string{"shop": "S1"},
		},
		OtherAmount: "2000", OtherMinor: 2000, OtherStatus: "FAILED", Harmless: []string{"WAIT"},
		SignatureHeaders: []string{"Toy-Time", "Toy-Sign"},
		Window:           toyWindow,
		Secrets:          []string{toyKey},
		Replies:          toyReplies,
	}
}

func TestCarefulAdapterPasses(t *testing.T) {
	t.Parallel()
	Run(t, toySuite(""))
}

func TestCarelessAdapterIsCaught(t *testing.T) {
	t.Parallel()
	for skip, by := range map[careless]string{
		"declarations":                  "WhatOperatorsNeedIsDeclared",
		"signature":                     "TamperedSignatureIsRefused",
		"half of the signature":         "TamperedSignatureIsRefused",
		"signature where none is given": "TamperedSignatureIsRefused",
		"time in the signed text":       "AlteredMessageIsRefusedOrMeansTheSame",
		"the future":                    "SignedTimeIsHeldOnBothSides",
		"the past":                      "SignedTimeIsHeldOnBothSides",
		"doubled names":                 "DoubledFieldIsRefusedThoughSigned",
		"number form":                   "OddNumberIsNoPayment",
		"amount":                        "AmountAndOrderAreThoseOfTheMessage",
		"unknown words":                 "UnknownWordIsNeverSilent",
		"harmless words":                "HarmlessWordMovesNothing",
		"state in the event key":        "EventKeyNamesTheFact",
		"payment in the event key":      "EventKeyNamesTheFact",
		"repeats":                       "EventKeyNamesTheFact",
		"account":                       "AnotherAccountIsNotOurs",
		"secrecy":                       "GenuineMessageIsReadExactly",
		"the request is read only":      "GenuineMessageIsReadExactly",
		"trace":                         "GenuineMessageIsReadExactly",
		"the answer to failure":         "ReplyIsExact",
	} {
		t.Run(string(skip), func(t *testing.T) {
			claim := slices.IndexFunc(claims, func(c claim) bool { return c.name == by })
			watch := &watcher{}
			if claims[claim].check(&probe{reporter: watch, Suite: toySuite(skip)}); !watch.seen.Load() {
				t.Errorf("an adapter without %q passes %s", skip, by)
			}
		})
	}
}

// watcher is called by several callers at once where a claim has them.
type watcher struct{ seen atomic.Bool }

func (w *watcher) Helper()               {}
func (w *watcher) Errorf(string, ...any) { w.seen.Store(true) }
