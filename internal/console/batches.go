package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/batch"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/notify"

	"github.com/uptrace/bun"
)

// batchList is a list from which batches are made, with the object name of its rows and the
// list's names for the fields of a BatchFilter.
type batchList struct {
	spec   *list.Spec
	object string
	names  map[string]string
}

var batchLists = []batchList{
	{DeliveryList, notify.BatchObject, map[string]string{
		"state": "status", "merchant": "merchant", "supplier": "supplier", "cause": "cause", "kind": "type",
	}},
	{OrderList, "order", map[string]string{
		"state": "status", "merchant": "merchant",
		"supplier": "supplier",
	}},
	{CompensationList, compensation.ActObject, map[string]string{
		"state": "state", "merchant": "merchant", "supplier": "supplier", "cause": "cause", "kind": "kind",
	}},
	{ExceptionList, ExceptionObject, map[string]string{
		"state": "state", "merchant": "merchant", "supplier": "supplier", "cause": "cause", "kind": "kind",
	}},
}

// batchObjects are what the rows may be that an action and a kind name: what ran out of tries
// is found as a compensation, or as the exception about it.
func batchObjects(action, kind string, applies func(action, object string) bool) (objects []string) {
	for _, l := range batchLists {
		if applies(action, l.object) && (l.object != ExceptionObject || kind == "" || exception.RunsAgain(kind)) {
			objects = append(objects, l.object)
		}
	}
	if exception.RunsAgain(kind) {
		slices.Reverse(objects)
	}
	return objects
}

// BatchLists returns the lists from which batches are made.
func BatchLists() (specs []*list.Spec) {
	for _, l := range batchLists {
		specs = append(specs, l.spec)
	}
	return specs
}

// BatchList returns the list with this name from which batches are made, and the object name of
// its rows; nil = none.
func BatchList(name string) (spec *list.Spec, object string) {
	for _, l := range batchLists {
		if l.spec.Name == name {
			return l.spec, l.object
		}
	}
	return nil, ""
}

// BatchWish names the rows of a batch, by a filter or by their ids.
type BatchWish struct {
	Action string       `json:"action" required:"true" max:"64" doc:"What is done to each row: resend, query, rerun, redrive or close."`
	Filter *BatchFilter `json:"filter" says:"use an object" doc:"The rows, by a filter."`
	// IDs are public: order numbers, ids of notifications, of compensations and of exceptions.
	IDs    []string `json:"ids" doc:"The rows, by their order numbers or ids."`
	Reason string   `json:"reason" max:"10000" doc:"Not stored: it is given when the batch starts."`
}

// BatchFilter filters the rows; empty fields do not filter.
type BatchFilter struct {
	State    string `json:"state" max:"256" doc:"Their state."`
	Merchant string `json:"merchant" max:"256" doc:"The merchant's code."`
	Supplier string `json:"supplier" max:"256" doc:"The supplier's code."`
	Cause    string `json:"cause" max:"256" doc:"Why they failed."`
	Kind     string `json:"kind" max:"256" doc:"Their kind."`
	From     string `json:"from" max:"256" doc:"Created at or after this time (RFC 3339)."`
	To       string `json:"to" max:"256" doc:"Created before this time (RFC 3339)."`
}

// terms are the filter's conditions besides the time.
func (f *BatchFilter) terms() []list.Term {
	return []list.Term{
		{Name: "state", Value: f.State},
		{Name: "merchant", Value: f.Merchant},
		{Name: "supplier", Value: f.Supplier},
		{Name: "cause", Value: f.Cause},
		{Name: "kind", Value: f.Kind},
	}
}

// BatchRows are the rows that a BatchWish names.
type BatchRows struct {
	Object  string
	Address string // of the list, with the filter; "" = rows were picked
	IDs     []int64
}

// BatchRows finds rows; applies reports whether a batch can do an action to the rows of an object.
// Errors: *act.FieldError, batch.ErrTooMany.
func (b *Reader) BatchRows(ctx context.Context, w BatchWish, applies func(action, object string) bool) (found BatchRows, err error) {
	if len(w.IDs) > batch.MaxRows {
		return found, batch.ErrTooMany
	}
	kind := ""
	if w.Filter != nil {
		kind = w.Filter.Kind
	}
	objects := batchObjects(w.Action, kind, applies)
	if len(objects) == 0 {
		return found, &act.FieldError{Field: "action", Problem: "use resend, query, rerun, redrive or close"}
	}
	if w.Filter != nil {
		return b.batchFilter(ctx, objects[0], *w.Filter)
	}
	for _, object := range objects {
		ids, err := b.batchIDs(ctx, object, w.IDs)
		if err != nil {
			return found, err
		}
		switch {
		case len(ids) > 0 && len(found.IDs) > 0:
			return found, &act.FieldError{Field: "ids", Problem: "these are rows of several lists: make a batch of each"}
		case len(ids) > 0 || found.Object == "":
			found = BatchRows{Object: object, IDs: ids}
		}
	}
	return found, nil
}

// batchFilter finds the rows of an object that a filter names.
func (b *Reader) batchFilter(ctx context.Context, object string, f BatchFilter) (found BatchRows, err error) {
	l := batchLists[slices.IndexFunc(batchLists, func(l batchList) bool { return l.object == object })]
	q, span, err := f.query(l.spec, l.names)
	if err != nil {
		return found, err
	}
	values := url.Values{}
	for _, t := range q.Terms {
		values.Set(t.Name, t.Value)
	}
	found.Object, found.Address = object, strings.TrimSuffix("/"+l.spec.Name+"?"+values.Encode(), "?")
	found.IDs, err = q.IDs(ctx, b.db, span, b.db.NewID(), batch.MaxRows)
	return found, err
}

// query converts the filter to a query of a list.
func (f *BatchFilter) query(spec *list.Spec, names map[string]string) (q list.Query, s list.Slice, err error) {
	q = list.Query{Spec: spec, Scope: list.All()}
	for _, t := range f.terms() {
		name, value, field := t.Name, t.Value, names[t.Name]
		if value == "" {
			continue
		}
		known := slices.IndexFunc(spec.Fields, func(x list.Field) bool { return x.Name == field })
		if known < 0 {
			return q, s, &act.FieldError{Field: "filter." + name, Problem: spec.Name + " cannot be filtered by this"}
		}
		if all := spec.Fields[known].Values; len(all) > 0 && !slices.Contains(all, value) {
			if spec == CompensationList && name == "kind" {
				all = slices.Concat(all, exception.AgainKinds)
			}
			return q, s, &act.FieldError{Field: "filter." + name, Problem: "use one of " + strings.Join(all, ", ")}
		}
		q = q.With(field, value)
	}
	if s.From, err = momentOf("filter.from", f.From); err == nil {
		s.To, err = momentOf("filter.to", f.To)
	}
	return q, s, err
}

// momentOf reads a time (Unix µs); "" = none.
func momentOf(field, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, &act.FieldError{Field: field, Problem: "use an RFC 3339 time such as 2026-11-21T08:00:00Z"}
	}
	return at.UnixMicro(), nil
}

// batchIDs returns the rows of public ids. Ids without a row are left out.
func (b *Reader) batchIDs(ctx context.Context, object string, ids []string) (rows []int64, err error) {
	var numbers []int64
	var texts []string
	for _, id := range ids {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
		texts = append(texts, id)
	}
	queries := map[string]string{
		"order":                "SELECT id FROM orders WHERE order_no IN (?) OR id IN (?)",
		compensation.ActObject: "SELECT id FROM compensations WHERE '' NOT IN (?) AND id IN (?)",
		ExceptionObject:        "SELECT id FROM exceptions WHERE '' NOT IN (?) AND id IN (?)",
		notify.BatchObject:     "SELECT id FROM deliveries WHERE subject_id IN (SELECT o.id FROM orders AS o WHERE o.order_no IN (?)) OR id IN (?)",
	}
	if err := b.db.Read.NewRaw(queries[object], bun.List(texts), bun.List(numbers)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("find the rows of a batch: %w", err)
	}
	if object != notify.BatchObject {
		return rows, nil
	}
	for _, id := range ids {
		if !strings.HasPrefix(id, "ntf_") {
			continue
		}
		event, err := notify.FindEvent(ctx, b.db.Read, id)
		if errors.Is(err, notify.ErrNoDelivery) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var more []int64
		if err := b.db.Read.NewRaw("SELECT id FROM deliveries WHERE subject_id = ? AND event_id = ?", event.SubjectID, event.ID).Scan(ctx,
			&more); err != nil {
			return nil, fmt.Errorf("find the deliveries of a notification: %w", err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// maxBatchBreakers bounds the breakers that the page of a batch names.
const maxBatchBreakers = 10

// BatchBreakers returns the recipients whose breakers rows of a batch wait for, some of them.
func (b *Reader) BatchBreakers(ctx context.Context, x *batch.Batch) ([]Named, error) {
	if x.Object != notify.BatchObject || x.Planned.Count(string(act.Waits)) == 0 {
		return nil, nil
	}
	var ids []int64
	if err := b.db.Read.NewRaw("SELECT DISTINCT d.recipient_id FROM batch_rows AS r JOIN deliveries AS d ON d.id = r.object_id"+
		" WHERE r.batch_id = ? AND r.cause = ? ORDER BY 1 LIMIT ?",
		x.ID, batch.MerchantBreaker, maxBatchBreakers).Scan(ctx, &ids); err != nil {
		return nil, fmt.Errorf("read the breakers that a batch waits for: %w", err)
	}
	named, err := b.named(ctx, ids)
	all := make([]Named, 0, len(ids))
	for _, id := range ids {
		if b.breakers.Of(b.settings.Merchants().RecipientOf(id)).Tripped() {
			all = append(all, named[id])
		}
	}
	return all, err
}

// BatchesList declares the list of batches. The rows of one batch may belong to many merchants.
var BatchesList = list.New(list.Spec{
	Name:    "batches",
	Sources: []list.Source{{Table: "batches", Alias: "bt", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields: []list.Field{
		{Name: "action", Column: "action", Values: batchActions},
		{Name: "state", Column: "state", Indexed: true, Values: batch.Moves.Words()},
		{Name: "maker", Suggest: operatorNames, Match: func(_ context.Context, _ list.Lookup, name string) (list.Match, error) {
			return list.Match{Where: "bt.made_by IN (?)", Args: []any{bun.List(audit.Actors(name))}}, nil
		}},
	},
})

// batchActions are the actions of all batches.
var batchActions = []string{"resend", "query", "rerun", "redrive", "close"}

// Batches reads one page of batches.
func (b *Reader) Batches(ctx context.Context, q list.Query, s list.Slice) (list.Page[batch.Batch], error) {
	return list.Read(ctx, b.db, q, s, func(x *batch.Batch) int64 { return x.ID })
}
