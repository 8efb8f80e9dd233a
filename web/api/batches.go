package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/sheet"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// batchesPath is the prefix of the paths of batches.
const batchesPath = "/api/v1/admin/batches"

// outcomeView counts the rows of a batch with one planned outcome, and their money.
type outcomeView struct {
	Outcome string    `json:"outcome"`
	Count   int64     `json:"count"`
	Sums    []sumView `json:"sums"`
}

// batchView is a batch in the admin API. Missing values are null.
type batchView struct {
	ID             string      `json:"id"`
	Action         string      `json:"action"`
	Object         string      `json:"object"`
	State          string      `json:"state"`
	MadeBy         string      `json:"made_by"`
	MadeAt         string      `json:"made_at"`
	ExpiresAt      string      `json:"expires_at"`
	Plan           planView    `json:"plan"`
	Rows           int64       `json:"rows"`
	NeedsSecond    bool        `json:"needs_second"`
	Approval       *string     `json:"approval"`
	Reason         *string     `json:"reason"`
	Done           int64       `json:"done"` // rows processed
	Of             int64       `json:"of"`
	SumsDone       []sumView   `json:"sums_done"`
	Rate           float64     `json:"rate"`     // rows per second since the start
	MaxRate        int64       `json:"max_rate"` // configured maximum
	ETASeconds     *int64      `json:"eta_seconds"`
	Causes         []causeView `json:"causes"`
	StoppedBecause *string     `json:"stopped_because"`
	StartedAt      *string     `json:"started_at"`
	FinishedAt     *string     `json:"finished_at"`
}

type causeView struct {
	Cause string `json:"cause"`
	Count int64  `json:"count"`
}

type planView struct {
	Outcomes []outcomeView `json:"outcomes"`
}

// outcomeWords maps the outcomes of a plan to the effects that they stand for.
var outcomeWords = []struct {
	word string
	of   []string
}{
	{string(act.Will), []string{string(act.Will), string(act.Waits)}},
	{string(act.WillQuery), []string{string(act.WillQuery)}},
	{string(act.Final), []string{string(act.Final)}},
	{string(act.Unknown), []string{string(act.Unknown)}},
	{string(act.Blocked), []string{string(act.Blocked)}},
}

func sumsOf(all []report.Sum) []sumView {
	views := []sumView{}
	for _, s := range all {
		if s.Currency != "" {
			views = append(views, sumView{s.Currency, s.Minor})
		}
	}
	return views
}

func (s *handlers) viewBatch(ctx context.Context, b *batch.Batch) (batchView, error) {
	v := batchView{
		ID: b.No(), Action: b.Action, Object: b.Object, State: string(b.State), MadeBy: b.MadeBy, MadeAt: notify.Stamp(b.MadeAt),
		ExpiresAt: notify.Stamp(b.ExpiresAt),
		Rows:      b.Rows, NeedsSecond: s.Batches.NeedsSecond(b), Reason: orNull(b.Reason), Done: b.Ended(), Of: b.ToDo,
		SumsDone: sumsOf(b.Result.Ran()),
		MaxRate:  b.Rate, StoppedBecause: orNull(b.StoppedBecause), StartedAt: notify.StampOr(b.StartedAt),
		FinishedAt: notify.StampOr(b.FinishedAt),
	}
	for _, o := range outcomeWords {
		v.Plan.Outcomes = append(v.Plan.Outcomes, outcomeView{o.word, b.Planned.Count(o.of...), sumsOf(b.Planned.Sums(o.of...))})
	}
	if b.ApprovalID != 0 {
		no := (&approval.Approval{ID: b.ApprovalID}).No()
		v.Approval = &no
	}
	if pace := b.Pace(s.DB.Now()); b.StartedAt != nil {
		v.Rate = pace.PerSecond
		if pace.Left >= 0 {
			v.ETASeconds = &pace.Left
		}
	}
	causes, err := b.Causes(ctx, s.DB.Read)
	v.Causes = []causeView{}
	for _, c := range causes {
		v.Causes = append(v.Causes, causeView{c.Cause, c.Count})
	}
	return v, err
}

// planBatch plans what would be done to many rows, and stores nothing else.
func (s *handlers) planBatch(c *fiber.Ctx) error {
	wish := *requestOf[console.BatchWish](c)
	if (wish.Filter == nil) == (len(wish.IDs) == 0) {
		return web.InvalidField("ids", "give ids or a filter")
	}
	ctx := c.UserContext()
	found, err := s.Console.BatchRows(ctx, wish, s.Batches.Applies)
	if err != nil {
		return err
	}
	b, err := s.Batches.Plan(ctx, batch.Proposal{
		Action: wish.Action, Object: found.Object, By: s.Actor(c), Filter: found.Address,
		IDs: found.IDs,
	})
	if err != nil {
		return err
	}
	return s.answerBatch(c, b, http.StatusCreated)
}

func (s *handlers) answerBatch(c *fiber.Ctx, b *batch.Batch, status int) error {
	v, err := s.viewBatch(c.UserContext(), b)
	if err != nil {
		return err
	}
	return c.Status(status).JSON(v)
}

// batchOf returns the batch in the path.
func (s *handlers) batchOf(c *fiber.Ctx) (*batch.Batch, error) {
	id, ok := batch.ParseNo(c.Params("id"))
	if !ok {
		return nil, act.ErrNotFound
	}
	return batch.Find(c.UserContext(), s.DB, id)
}

func (s *handlers) showBatch(status int) fiber.Handler {
	return func(c *fiber.Ctx) error {
		b, err := s.batchOf(c)
		if err != nil {
			return err
		}
		return s.answerBatch(c, b, status)
	}
}

func (s *handlers) listBatches(c *fiber.Ctx) error {
	r := requestOf[paging](c)
	limit := int(r.Limit)
	rows, err := batch.List(c.UserContext(), s.DB.Read, r.Cursor, limit+1)
	if err != nil {
		return err
	}
	var next int64
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].ID
	}
	views := make([]batchView, len(rows))
	for i, b := range rows {
		if views[i], err = s.viewBatch(c.UserContext(), b); err != nil {
			return err
		}
	}
	return c.JSON(page[batchView]{Items: views, Next: orNull(cursorText(next))})
}

// startRequest is the start of a batch.
type startRequest struct {
	reasonRequest
	Typed json.RawMessage `json:"typed" kind:"raw" doc:"The amount as it is shown: a text if the batch has one currency, or an object by currency."`
}

// startBatch is the route that starts a batch (202), or proposes to if it needs a second person (201).
func (s *handlers) startBatch() web.Route {
	return s.onAct(web.ActRoute{
		Path: batchesPath + "/:id/start", Kind: batch.StartAct, Ref: s.batchRef, Request: startRequest{}, Read: s.readStart,
		Answer: web.OneOf{batchView{}, proposedView{}},
		Run: func(ctx context.Context, call act.Call) (act.Outcome, error) {
			out, err := s.Batches.Change(ctx, call)
			if field, ok := errors.AsType[*act.FieldError](err); ok && strings.HasPrefix(field.Field, batch.AmountField) {
				err = &act.FieldError{Field: "amount", Problem: field.Problem}
			}
			return out, err
		},
		Then: func(c *fiber.Ctx, done web.Acted) error {
			if a, _ := done.Result.(*approval.Approval); a != nil {
				views, err := s.viewApprovals(c.UserContext(), a)
				if err != nil {
					return err
				}
				return c.Status(http.StatusCreated).JSON(map[string]any{"approval": views[0]})
			}
			return s.showBatch(http.StatusAccepted)(c)
		},
	})
}

func (s *handlers) readStart(c *fiber.Ctx, call *act.Call) error {
	b, err := s.batchOf(c)
	if err != nil {
		return err
	}
	r := requestOf[startRequest](c)
	typed, err := typedAmounts(r.Typed, b)
	if err != nil {
		return err
	}
	call.Reason = r.Reason
	call.Params, err = json.Marshal(batch.StartParams{Amounts: typed})
	return err
}

// typedAmounts reads the typed amounts by currency.
func typedAmounts(raw json.RawMessage, b *batch.Batch) (by map[string]string, err error) {
	if raw == nil || json.Unmarshal(raw, &by) == nil {
		return by, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, web.InvalidField("typed", "use a text")
	}
	sums := report.InCurrencies(b.Planned.Acts())
	if len(sums) != 1 {
		return nil, web.InvalidField("amount", "type an amount for each currency: {\"CNY\": \"3184.50\"}")
	}
	return map[string]string{sums[0].Currency: text}, nil
}

// onBatch is the route of one of the other acts on a batch.
func (s *handlers) onBatch(verb, kind string) web.Route {
	return s.onAct(web.ActRoute{
		Path: batchesPath + "/:id/" + verb, Kind: kind, Ref: s.batchRef, Run: s.Batches.Change, Answer: batchView{},
		Then: func(c *fiber.Ctx, _ web.Acted) error { return s.showBatch(http.StatusOK)(c) },
	})
}

// batchRef refers to the batch in the path.
func (s *handlers) batchRef(c *fiber.Ctx) (act.Ref, error) {
	b, err := s.batchOf(c)
	if err != nil {
		return act.Ref{}, err
	}
	return act.Ref{Row: b.ID}, nil
}

// rowView is one row of a batch.
type rowView struct {
	Number   int64   `json:"number"`
	Object   string  `json:"object"`
	ObjectID string  `json:"object_id"`
	OrderNo  *string `json:"order_no"`
	Outcome  string  `json:"outcome"`
	Result   *string `json:"result"` // done, skipped, failed; null = not processed yet
	Cause    *string `json:"cause"`
	Amount   *int64  `json:"amount"`
	Currency *string `json:"currency"`
	At       *string `json:"at"`
}

func viewRow(r batch.Row) rowView {
	v := rowView{
		Number: r.Number, Object: r.Object, ObjectID: strconv.FormatInt(r.ObjectID, 10), OrderNo: orNull(r.OrderNo), Outcome: r.Outcome,
		Cause: orNull(r.Cause), Currency: orNull(r.Currency), At: notify.StampOr(r.At),
	}
	if r.State != batch.RowWaiting {
		v.Result = orNull(string(r.State))
	}
	if r.Currency != "" {
		v.Amount = &r.Amount
	}
	return v
}

type rowsQuery struct {
	Outcome string `query:"outcome" doc:"The outcome that was planned."`
	Result  string `query:"result" doc:"What became of the row."`
	Cause   string `query:"cause" doc:"Why it failed or was skipped."`
	Format  string `query:"format" choices:"csv" doc:"csv streams all rows."`
	paging
}

func (rowsQuery) choices() map[string][]string {
	words := make([]string, len(outcomeWords))
	for i, o := range outcomeWords {
		words[i] = o.word
	}
	return map[string][]string{"outcome": words, "result": batch.RowMoves.Words()}
}

func (s *handlers) batchRows(c *fiber.Ctx) error {
	b, err := s.batchOf(c)
	if err != nil {
		return err
	}
	r := requestOf[rowsQuery](c)
	q := batch.RowQuery{Outcome: r.Outcome, State: r.Result, Cause: r.Cause, After: r.Cursor, Limit: int(r.Limit)}
	if r.Format == "csv" {
		return s.exportRows(c, b, q)
	}
	rows, more, err := batch.Rows(c.UserContext(), s.DB.Read, b.ID, q)
	if err != nil {
		return err
	}
	var next int64
	if more {
		next = rows[len(rows)-1].Number
	}
	return c.JSON(pageOf(rows, next, viewRow))
}

// exportRows streams the rows as CSV. The first row says which, when and for whom.
func (s *handlers) exportRows(c *fiber.Ctx, b *batch.Batch, q batch.RowQuery) error {
	by := s.Actor(c).Name
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	columns := []string{"number", "object", "object_id", "order_no", "outcome", "result", "cause", "amount", "currency", "at"}
	heads := make([]sheet.Head, len(columns))
	for i, name := range columns {
		heads[i].Text = name
	}
	return s.StreamTable(c, web.Table{
		Format: sheet.CSV, Name: b.No(), By: by,
		Title: "Backstop " + s.Version + " · " + b.No() + " · " + c.Request().URI().QueryArgs().String() + " · " +
			notify.Stamp(s.DB.Now()) + " · " + by,
		Heads: heads,
		Each: func(write func([]string) error) error {
			return batch.EachRow(context.Background(), s.DB.Read, b.ID, q, func(r batch.Row) error { // the request has ended by then
				v := viewRow(r)
				amount := ""
				if v.Amount != nil {
					amount = strconv.FormatInt(*v.Amount, 10)
				}
				return write([]string{
					strconv.FormatInt(v.Number, 10), v.Object, v.ObjectID, text(v.OrderNo), v.Outcome, text(v.Result), text(v.Cause),
					amount, text(v.Currency), text(v.At),
				})
			})
		},
	})
}
