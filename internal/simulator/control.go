package simulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"backstop/internal/base/invalid"
	"backstop/internal/base/textlimit"
)

// Call is one request, as listed by /_sim/calls.
type Call struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Supplier   string    `json:"supplier"`
	Op         operation `json:"op"`
	Ref        string    `json:"ref"`
	Number     string    `json:"number"` // identifies the money movement; for an order, its reference
	Body       string    `json:"body"`   // at most 1 KiB; for a GET, the URL
	Repeated   bool      `json:"repeated"`
	Spoilt     string    `json:"spoilt,omitempty"` // how the answer was corrupted, lost or refused
	MoneyMoved int       `json:"money_moved"`      // times so far, for this number
}

func (s *Simulator) record(a *Account, c call, spoilt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordLocked(a, c, spoilt)
}

func (s *Simulator) recordLocked(a *Account, c call, spoilt string) {
	number := s.first + int64(len(s.calls)) + 1
	count := cmp.Or(c.payout, c.refund, c.ref)
	key := asking{a.Code, c.op, count}
	one := &Call{
		ID: strconv.FormatInt(number, 10), At: time.Now().UTC(), Supplier: a.Code, Op: c.op, Ref: c.ref, Number: count,
		Body: textlimit.Cut(c.asked, maxKeptBody), Repeated: count != "" && s.asked[key], Spoilt: spoilt,
	}
	if count != "" && (s.asked[key] || len(s.asked) < 3*MaxReferences) {
		s.asked[key] = true
	}
	s.calls = append(s.calls, one)
	if len(s.calls) > maxCalls {
		s.first++
		s.calls = s.calls[1:]
	}
}

// spoil records a call with how its answer is spoilt, and counts down the answers that are lost.
func (s *Simulator) spoil(a *Account, c call, answer string, left *int) (lose bool) {
	spoilt := ""
	if answer != AnswerOK {
		spoilt = answer
	}
	if lose = *left > 0; lose {
		*left--
		spoilt = "lost"
	}
	s.recordLocked(a, c, spoilt)
	return lose
}

// Calls lists the calls about a reference, oldest first; "" = all.
func (s *Simulator) Calls(ref string) []Call {
	found, _ := s.page(ref, 0, maxCalls)
	return found
}

// page lists calls with greater ids; next = 0 means no more.
func (s *Simulator) page(ref string, after int64, limit int) (found []Call, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found = []Call{}
	for i := max(0, after-s.first); i < int64(len(s.calls)); i++ {
		c := s.calls[i]
		if ref != "" && c.Ref != ref && c.Number != ref {
			continue
		}
		if len(found) == limit {
			next, _ = strconv.ParseInt(found[limit-1].ID, 10, 64)
			return found, next
		}
		one := *c
		one.MoneyMoved = s.movedLocked(c.Number)
		found = append(found, one)
	}
	return found, 0
}

// control adds the routes of the control API.
func (s *Simulator) control() {
	s.mux.HandleFunc("PUT /_sim/{supplier}/orders/{ref}", s.putOrder)
	s.mux.HandleFunc("GET /_sim/{supplier}/orders/{ref}", get(s, "ref", s.Order))
	s.mux.HandleFunc("PUT /_sim/{supplier}/refunds/{no}", s.putRefund)
	s.mux.HandleFunc("GET /_sim/{supplier}/refunds/{no}", get(s, "no", s.Refund))
	s.mux.HandleFunc("PUT /_sim/{supplier}/disputes/{ref}", s.putDispute)
	s.mux.HandleFunc("GET /_sim/{supplier}/disputes/{ref}", s.getDispute)
	s.mux.HandleFunc("PUT /_sim/{supplier}/payouts/{no}", s.putPayout)
	s.mux.HandleFunc("GET /_sim/{supplier}/payouts/{no}", get(s, "no", s.Payout))
	s.mux.HandleFunc("GET /_sim/calls", s.listCalls)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "not_found", "", r.Method+" "+r.URL.Path+" is not part of any simulated API")
	})
}

func (s *Simulator) putOrder(w http.ResponseWriter, r *http.Request) {
	put(w, r, func(script Script) (Report, error) { return s.Set(r.PathValue("supplier"), r.PathValue("ref"), script) })
}

func (s *Simulator) putRefund(w http.ResponseWriter, r *http.Request) {
	put(w, r, func(script RefundScript) (RefundReport, error) {
		return s.SetRefund(r.PathValue("supplier"), r.PathValue("no"), script)
	})
}

func (s *Simulator) putPayout(w http.ResponseWriter, r *http.Request) {
	if a := s.Account(r.PathValue("supplier")); a != nil && !a.Payouts() {
		fail(w, http.StatusNotImplemented, "not_implemented", "supplier", "no payouts are simulated for "+a.Kind)
		return
	}
	put(w, r, func(script PayoutScript) (PayoutReport, error) {
		return s.SetPayout(r.PathValue("supplier"), r.PathValue("no"), script)
	})
}

// get answers with the report about a number of a supplier.
func get[R any](s *Simulator, number string, report func(supplier, number string) R) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Account(r.PathValue("supplier")) == nil {
			fail(w, http.StatusNotFound, "not_found", "supplier", "there is no such supplier")
			return
		}
		write(w, jsonReply(http.StatusOK, report(r.PathValue("supplier"), r.PathValue(number))))
	}
}

// put reads a script, has it set, and answers with the report.
func put[S, R any](w http.ResponseWriter, r *http.Request, set func(S) (R, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "body", "", "the body is larger than 64 KiB or was cut off")
		return
	}
	var script S
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&script); err != nil {
		fail(w, http.StatusBadRequest, "bad_json", "", err.Error())
		return
	}
	report, err := set(script)
	var wrong *invalid.FieldError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "supplier":
		fail(w, http.StatusNotFound, "not_found", wrong.Field, wrong.Problem)
	case errors.As(err, &wrong):
		fail(w, http.StatusUnprocessableEntity, "invalid_field", wrong.Field, wrong.Problem)
	case err != nil:
		fail(w, http.StatusServiceUnavailable, "full", "", err.Error())
	default:
		write(w, jsonReply(http.StatusOK, report))
	}
}

// Pages of /_sim/calls.
const (
	defaultPage = 50
	maxPage     = 200
)

func (s *Simulator) listCalls(w http.ResponseWriter, r *http.Request) {
	limit, after := int64(defaultPage), int64(0)
	for _, p := range []struct {
		name     string
		into     *int64
		min, max int64
	}{{"limit", &limit, 1, maxPage}, {"cursor", &after, 0, 1 << 62}} {
		text := r.URL.Query().Get(p.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < p.min || n > p.max {
			fail(w, http.StatusUnprocessableEntity, "invalid_field", p.name, "must be a number in the allowed range")
			return
		}
		*p.into = n
	}
	found, next := s.page(r.URL.Query().Get("ref"), after, int(limit))
	answer := object{"items": found, "next": nil}
	if next != 0 {
		answer["next"] = strconv.FormatInt(next, 10)
	}
	moved := map[string]int{}
	for _, c := range found {
		moved[c.Number] = c.MoneyMoved
	}
	answer["money_moved"] = moved
	write(w, jsonReply(http.StatusOK, answer))
}

// fail responds with an error of the simulator itself, in the format of Backstop's own.
func fail(w http.ResponseWriter, status int, code, field, message string) {
	detail := object{"code": code, "message": message}
	if field != "" {
		detail["field"] = field
	}
	write(w, jsonReply(status, object{"error": detail}))
}
