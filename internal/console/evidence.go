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

// Evidence is one order's story as it is handed out for a dispute. Amounts and ids
// are texts: programs that read numbers as floats lose digits. Moments are RFC
// 3339 to the microsecond, in the zone that is named.
type Evidence struct {
	ExportedAt string `json:"exported_at"`
	ExportedBy string `json:"exported_by"`
	Zone       string `json:"zone"`
	Product    string `json:"product"`
	// The head of the audit's chain when this was made: rows are numbered without a
	// gap, and each hash covers the row before it.
	AuditRows int64            `json:"audit_rows"`
	AuditHead string           `json:"audit_head"`
	Order     map[string]any   `json:"order"`
	Events    []map[string]any `json:"events"`
	Ledger    []map[string]any `json:"ledger"`
	// Complete says that no kind of event was cut off and no text left out.
	Complete bool `json:"complete"`
	LeftOut  struct {
		Callbacks     int64 `json:"callbacks"`
		MoreCallbacks bool  `json:"more_callbacks"` // Callbacks is where counting ended
		Texts         int64 `json:"texts"`          // bodies, headers and answers, each named by its event
		Bytes         int64 `json:"bytes"`
	} `json:"left_out"`
}

// Evidence writes the story down. It masks the story first: of what buyers sent
// of themselves only hashes leave the house, by which the original can be proved.
func (s *Story) Evidence(zone *time.Location, texts text.Catalog) *Evidence {
	s.prove()
	s.Mask()
	w := evidenceWriter{s, zone, texts}
	e := &Evidence{Zone: zone.String(), Order: w.order(), Events: []map[string]any{}, Ledger: []map[string]any{}}
	room := evidenceBytes
	for i, item := range s.Items {
		event := w.event(item)
		room = e.fit(event, room)
		event["step"], event["at"], event["phase"] = i+1, w.moment(item.At), string(item.Phase)
		e.Events = append(e.Events, event)
	}
	for _, t := range s.Transfers {
		e.Ledger = append(e.Ledger, map[string]any{
			"debit": t.Debit, "credit": t.Credit, "amount": number(t.Amount), "currency": t.Currency,
			"journal": number(t.JournalID), "ref": t.Ref, "at": w.moment(t.CreatedAt),
		})
	}
	e.LeftOut.Callbacks, e.LeftOut.MoreCallbacks = s.Left.Callbacks, s.Left.MoreCallbacks
	e.LeftOut.Texts, e.LeftOut.Bytes = e.LeftOut.Texts+s.Left.Bodies, e.LeftOut.Bytes+s.Left.Bytes
	e.Complete = !s.Cut && e.LeftOut.Texts == 0
	return e
}

// longText is from how many bytes on a text of an event may be left out.
const longText = 512

// fit takes the texts out of an event for which the file has no room, and says how
// much room is left.
func (e *Evidence) fit(event map[string]any, room int) int {
	for _, name := range slices.Sorted(maps.Keys(event)) {
		text, ok := event[name].(string)
		if !ok || len(text) < longText {
			continue
		}
		written, err := json.Marshal(text)
		if err == nil && len(written) <= room {
			room -= len(written)
			continue
		}
		delete(event, name)
		event[name+"_omitted_bytes"] = len(text)
		e.LeftOut.Texts, e.LeftOut.Bytes = e.LeftOut.Texts+1, e.LeftOut.Bytes+int64(len(text))
	}
	return room
}

type evidenceWriter struct {
	*Story
	zone  *time.Location
	texts text.Catalog // of what rows keep by a code
}

func (w evidenceWriter) moment(us int64) string { return Moment(us, w.zone) }

// Moment writes a moment as evidence does.
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
		"subject": o.Subject, "status": string(o.Status), "version": o.Version, "notify_status": w.Told, "close_reason": o.CloseReason,
		"created_at": w.moment(o.CreatedAt), "expires_at": w.moment(o.ExpiresAt), "items": items, "stands": string(w.Why.Rule),
	}
	for name, at := range map[string]*int64{"paid_at": o.PaidAt, "closed_at": o.ClosedAt} {
		if at != nil {
			order[name] = w.moment(*at)
		}
	}
	return order
}

// event writes one event by its kind; when it was stands beside it.
func (w evidenceWriter) event(i Item) map[string]any {
	switch {
	case i.Callback != nil:
		return w.callback(i.Callback)
	case i.Move != nil:
		return map[string]any{
			"kind": "status", "from": string(i.Move.From), "to": string(i.Move.To), "version": i.Move.Version,
			"cause": string(i.Move.Cause), "actor": i.Move.Actor,
		}
	case i.Queued != nil:
		return map[string]any{
			"kind": "notification", "id": w.PublicID(i.Queued.EventID), "type": i.Queued.EventType, "channel": i.Queued.Channel,
			"status": string(i.Queued.Status), "body": w.Bodies[i.Queued.EventID],
		}
	case i.Attempt != nil:
		a := i.Attempt
		event := map[string]any{
			"kind": "attempt", "number": a.Number, "url": a.URL, "result": string(a.Class), "http_status": a.HTTPStatus, "took_us": a.TookUS,
			"node": a.Node, "request_header": a.RequestHeader, "response_header": a.ResponseHeader, "error": a.Error,
		}
		putBody(event, "response_body", a.ResponseBody)
		return event
	case i.Exception != nil:
		x := i.Exception
		return map[string]any{
			"kind": "exception", "exception": x.Kind, "state": x.State, "subject": x.Subject, "amount": number(x.Amount), "currency": x.Currency,
			"seen": x.Seen, "detail": string(x.Detail), "outcome": string(x.Outcome), "reference": x.Reference,
		}
	case i.Settled != nil:
		x := i.Settled
		return map[string]any{
			"kind": "exception_settled", "exception": x.Kind, "state": x.State, "outcome": string(x.Outcome), "reference": x.Reference,
		}
	case i.Breaker != nil:
		c := i.Breaker
		return map[string]any{
			"kind": "breaker", "from": string(c.From), "to": string(c.To), "cause": c.Cause, "failures": c.Failures, "actor": c.Actor, "reason": c.Reason,
		}
	case i.Act != nil:
		return map[string]any{
			"kind": "act", "object": i.Act.Object, "action": i.Act.Action, "actor": i.Act.Actor, "params": i.Act.Params, "audit_row": i.Act.Number, "audit_hash": i.Act.Hash,
		}
	}
	return map[string]any{"kind": "plan", "plan": string(i.Plan.Kind), "number": i.Plan.Number, "of": i.Plan.Of}
}

func (w evidenceWriter) callback(c *Callback) map[string]any {
	steps := []map[string]any{}
	for _, step := range c.Steps {
		steps = append(steps, map[string]any{"name": step.Name, "ok": step.OK, "detail": step.Text(w.texts), "took_us": step.TookUS})
	}
	event := map[string]any{
		"kind": "callback", "supplier": c.Supplier, "outcome": c.Outcome, "remote_addr": c.RemoteAddr, "method": c.Method,
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

// putBody keeps bytes exactly: as text where they are one.
func putBody(event map[string]any, name string, body []byte) {
	if utf8.Valid(body) {
		event[name] = string(body)
		return
	}
	event[name+"_base64"] = base64.StdEncoding.EncodeToString(body)
}
