package console

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"backstop/internal/base/text"
)

// Evidence is one order's history as exported for a dispute. Amounts and ids are strings,
// because programs that parse numbers as floats lose digits. Times are RFC 3339 with
// microseconds, in the named time zone.
type Evidence struct {
	ExportedAt string `json:"exported_at"`
	ExportedBy string `json:"exported_by"`
	Zone       string `json:"zone"`
	Product    string `json:"product"`
	// The head of the audit chain at the time of export: rows are numbered without gaps, and
	// each hash covers the row before it.
	AuditRows int64            `json:"audit_rows"`
	AuditHead string           `json:"audit_head"`
	Order     map[string]any   `json:"order"`
	Events    []map[string]any `json:"events"`
	Ledger    []map[string]any `json:"ledger"`
	// Complete means that no event and no text is left out.
	Complete bool `json:"complete"`
	LeftOut  struct {
		Events LeftEvents `json:"events"`
		// Callbacks among the left-out events.
		Callbacks     int64 `json:"callbacks"`
		MoreCallbacks bool  `json:"more_callbacks"` // there are more than were counted
		Texts         int64 `json:"texts"`          // bodies, headers and answers, each named in its event
		Bytes         int64 `json:"bytes"`          // size of these texts
	} `json:"left_out"`
}

// Size limits in bytes of JSON; a whole file stays below 8 MiB.
const (
	evidenceBytes = 7 << 20 // all events
	evidenceTexts = 6 << 20 // the long texts among them
	longText      = 512     // texts from this length on may be left out
)

// Evidence returns the history as evidence. It masks the history first; for bodies with
// personal data it includes the hash of the original body, which proves it.
func (s *Story) Evidence(zone *time.Location, texts text.Catalog) *Evidence {
	s.prove()
	s.Mask()
	w := evidenceWriter{s, zone, texts}
	e := &Evidence{Zone: zone.String(), Order: w.order(), Ledger: []map[string]any{}}
	e.LeftOut.Texts, e.LeftOut.Bytes = s.Left.Texts, s.Left.Bytes
	w.addEvents(e)
	for _, t := range s.Transfers {
		e.Ledger = append(e.Ledger, map[string]any{
			"debit": t.Debit, "credit": t.Credit, "amount": number(t.Amount), "currency": t.Currency,
			"journal": number(t.JournalID), "ref": t.Ref, "at": w.moment(t.CreatedAt),
		})
	}
	c := e.LeftOut.Events[ItemCallback]
	e.LeftOut.Callbacks, e.LeftOut.MoreCallbacks = c.N, c.More
	e.Complete = len(e.LeftOut.Events) == 0 && e.LeftOut.Texts == 0
	return e
}

// addEvents writes the events for which the file has room, leaving out those in the middle
// first, and then their long texts, from the oldest event on.
func (w evidenceWriter) addEvents(e *Evidence) {
	events := make([]map[string]any, len(w.Items))
	texts := make([]map[string]string, len(w.Items))
	sizes := make([]int, len(w.Items))
	for i, item := range w.Items {
		events[i] = w.event(item)
		events[i]["kind"], events[i]["step"], events[i]["at"], events[i]["phase"] = item.Kind(), i+1, w.moment(item.At), item.Phase
		texts[i] = takeTexts(events[i])
		sizes[i] = jsonSize(events[i])
	}
	head, tail, room := FitEnds(sizes, evidenceBytes)
	e.Events = append(append([]map[string]any{}, events[:head]...), events[tail:]...)
	e.LeftOut.Events = w.Left.Events.With(w.Items[head:tail])
	room = min(room, evidenceTexts)
	for i, taken := range slices.Concat(texts[:head], texts[tail:]) {
		for _, name := range slices.Sorted(maps.Keys(taken)) {
			size := jsonSize(taken[name])
			if size > room {
				e.LeftOut.Texts, e.LeftOut.Bytes = e.LeftOut.Texts+1, e.LeftOut.Bytes+int64(len(taken[name]))
				continue
			}
			room -= size
			e.Events[i][name] = taken[name]
			delete(e.Events[i], name+omitted)
		}
	}
}

// FitEnds takes parts from both ends alternately while there is room: parts before head and
// from tail on are taken. left is the remaining room.
func FitEnds(sizes []int, room int) (head, tail, left int) {
	tail = len(sizes)
	for head < tail && sizes[head] <= room {
		room -= sizes[head]
		head++
		if head == tail || sizes[tail-1] > room {
			break
		}
		tail--
		room -= sizes[tail]
	}
	return head, tail, room
}

// omitted is the suffix of a field that contains the length of a left-out text.
const omitted = "_omitted_bytes"

// takeTexts removes the long texts from an event and leaves their lengths.
func takeTexts(event map[string]any) map[string]string {
	taken := map[string]string{}
	for name, value := range event {
		if text, ok := value.(string); ok && len(text) >= longText {
			taken[name] = text
		}
	}
	for name, text := range taken {
		delete(event, name)
		event[name+omitted] = len(text)
	}
	return taken
}

// jsonSize returns the length of a value in a file, or slightly more.
func jsonSize(value any) int {
	text, _ := json.Marshal(value) // strings, numbers and lists of them
	return len(text) + len(",")
}

type evidenceWriter struct {
	*Story
	zone  *time.Location
	texts text.Catalog // of the codes stored in rows
}

func (w evidenceWriter) moment(us int64) string { return Moment(us, w.zone) }

// Moment formats a time as in evidence.
func Moment(us int64, zone *time.Location) string {
	return time.UnixMicro(us).In(zone).Format("2006-01-02T15:04:05.000000Z07:00")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func (w evidenceWriter) order() map[string]any {
	o := w.Order
	items := []map[string]any{}
	for _, l := range w.Stock {
		items = append(items, map[string]any{"sku": l.SKU, "quantity": number(l.Quantity)})
	}
	order := map[string]any{
		"order_no": o.OrderNo, "out_trade_no": o.OutTradeNo, "merchant": w.Merchant.Code, "merchant_name": w.Merchant.Name,
		"supplier": w.Supplier.Code, "supplier_kind": w.Supplier.Name, "supplier_trade_no": o.SupplierTradeNo,
		"amount": number(o.Amount), "paid_amount": number(o.PaidAmount), "currency": o.Currency, "exponent": o.Exponent,
		"fee_amount": number(o.FeeAmount), "refunded_amount": number(o.RefundedAmount), "refund_status": o.RefundStatus(),
		"disputed_amount": number(o.DisputedAmount),
		"subject":         o.Subject, "status": string(o.Status), "version": o.Version, "notify_status": w.NotifyStatus,
		"close_reason": o.CloseReason,
		"created_at":   w.moment(o.CreatedAt), "expires_at": w.moment(o.ExpiresAt), "items": items, "stands": string(w.Why.Rule),
	}
	for name, at := range map[string]*int64{"paid_at": o.PaidAt, "closed_at": o.ClosedAt} {
		if at != nil {
			order[name] = w.moment(*at)
		}
	}
	return order
}

// event writes the fields specific to the kind of an event.
func (w evidenceWriter) event(i Item) map[string]any {
	switch {
	case i.Callback != nil:
		return w.callback(i.Callback)
	case i.Move != nil:
		return map[string]any{
			"from": string(i.Move.From), "to": string(i.Move.To), "version": i.Move.Version,
			"cause": string(i.Move.Cause), "actor": i.Move.Actor,
		}
	case i.Queued != nil:
		return map[string]any{
			"id": i.Queued.PublicID(), "type": i.Queued.EventType, "channel": i.Queued.Channel,
			"status": string(i.Queued.Status), "body": w.Bodies[i.Queued.EventID],
		}
	case i.Attempt != nil:
		a := i.Attempt
		event := map[string]any{
			"number": a.Number, "url": a.URL, "result": string(a.Class), "http_status": a.HTTPStatus, "took_us": a.TookUS,
			"node": a.Node, "request_header": a.RequestHeader, "response_header": a.ResponseHeader, "error": a.Error,
		}
		putBody(event, "response_body", a.ResponseBody)
		return event
	case i.Exception != nil:
		x := i.Exception
		return map[string]any{
			"exception": x.Kind, "state": x.State, "subject": x.Subject, "amount": number(x.Amount), "currency": x.Currency,
			"seen": x.Seen, "detail": string(x.Detail), "outcome": string(x.Outcome), "reference": x.Reference,
		}
	case i.Settled != nil:
		x := i.Settled
		return map[string]any{
			"exception": x.Kind, "state": x.State, "outcome": string(x.Outcome), "reference": x.Reference,
		}
	case i.Breaker != nil:
		c := i.Breaker
		return map[string]any{
			"from": string(c.From), "to": string(c.To), "cause": c.Cause, "failures": c.Failures, "actor": c.Actor, "reason": c.Reason,
		}
	case i.Call != nil:
		c := i.Call
		event := map[string]any{
			"call": string(c.Op), "supplier": c.Supplier, "reference": c.Reference, "class": string(c.Class), "status": c.Status,
			"http_status": c.HTTPStatus, "request": c.Request, "answer": c.Answer, "node": c.Node,
		}
		if c.TookUS != nil {
			event["took_us"] = *c.TookUS
		}
		return event
	case i.Act != nil:
		return map[string]any{
			"object": i.Act.Object, "action": i.Act.Action, "actor": i.Act.Actor, "params": i.Act.Params, "audit_row": i.Act.Number,
			"audit_hash": i.Act.Hash,
		}
	}
	if m := i.Refund; m != nil {
		return map[string]any{
			"refund_no": m.Of.RefundNo, "from": string(m.From), "to": string(m.To), "version": m.Version, "actor": m.Actor,
			"detail": m.Detail,
			"amount": number(m.Of.Amount), "currency": m.Of.Currency, "supplier_refund_no": m.Of.SupplierRefundNo, "reason": m.Of.Reason,
		}
	}
	if m := i.Dispute; m != nil {
		return map[string]any{
			"dispute_no": m.Of.DisputeNo, "supplier_dispute_no": m.Of.SupplierDisputeNo, "from": string(m.From), "to": string(m.To),
			"version": m.Version, "actor": m.Actor,
			"detail": m.Detail, "amount": number(m.Of.Amount), "currency": m.Of.Currency, "reason": m.Of.Reason,
		}
	}
	switch d := i.Decision(); {
	case d == nil:
	case i.Proposal != nil:
		return d.with(map[string]any{
			"params": string(d.Params), "reason": d.Reason, "evidence": d.Evidence,
			"expires_at": w.moment(d.ExpiresAt),
		})
	case i.Verdict != nil:
		return d.with(map[string]any{"reason": d.CheckerReason, "unverified": d.Unverified})
	default:
		return d.with(map[string]any{"result": d.Result, "error": d.Error, "tries": d.Tries})
	}
	return map[string]any{"plan": string(i.Plan.Kind), "number": i.Plan.Number, "of": i.Plan.Of}
}

func (w evidenceWriter) callback(c *Callback) map[string]any {
	steps := []map[string]any{}
	for _, step := range c.Steps {
		steps = append(steps, map[string]any{"name": step.Name, "ok": step.OK, "detail": step.Text(w.texts), "took_us": step.TookUS})
	}
	event := map[string]any{
		"supplier": c.Supplier, "outcome": c.Outcome, "remote_addr": c.RemoteAddr, "method": c.Method,
		"query": c.Query, "headers": c.Headers, "steps": steps, "body_sha256": c.sum, "body_bytes": c.Size,
	}
	if c.Seen > 0 {
		event["repeats"] = map[string]any{"seen": c.Seen, "last_seen_at": w.moment(c.LastSeenAt), "last_addr": c.LastAddr}
	}
	if c.Omitted {
		return event
	}
	putBody(event, "body", c.Body)
	return event
}

// putBody stores bytes exactly: as text or, if not valid UTF-8, as base64.
func putBody(event map[string]any, name string, body []byte) {
	if utf8.Valid(body) {
		event[name] = string(body)
		return
	}
	event[name+"_base64"] = base64.StdEncoding.EncodeToString(body)
}
