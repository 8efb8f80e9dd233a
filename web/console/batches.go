package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/sheet"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// maxPicked bounds the rows picked by hand.
const maxPicked = 5000

var tPickRows = text.Text{ZH: "请在列表中选择行", EN: "pick rows of the list"}

// planBatch freezes the picked rows of a list, or everything matched by the filter in the URL,
// and shows what would be done.
func (s *handlers) planBatch(c *fiber.Ctx) error {
	spec, object := console.BatchList(c.Params("list"))
	if spec == nil {
		return act.ErrNotFound
	}
	l := s.list(c, spec, spec == console.CompensationList || spec == console.ExceptionList)
	if l.Err != nil {
		return l.Err
	}
	filter := l.address()
	if web.Field(c, "pick") != "all" {
		filter, l.span.Only = "", []int64{}
		for _, text := range c.Request().PostArgs().PeekMulti("row") {
			id, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil || len(l.span.Only) == maxPicked {
				return web.Invalid("row", tPickRows)
			}
			l.span.Only = append(l.span.Only, id)
		}
		if len(l.span.Only) == 0 {
			return web.Invalid("row", tPickRows)
		}
	}
	ctx := c.UserContext()
	ids, err := l.filter.IDs(ctx, s.DB, l.span, s.DB.NewID(), batch.MaxRows)
	if err != nil {
		return slow(ctx, err)
	}
	b, err := s.Batches.Plan(ctx, batch.Proposal{Action: c.Params("action"), Object: object, By: s.Actor(c), Filter: filter, IDs: ids})
	if err != nil {
		return slow(ctx, err)
	}
	return c.Redirect(batchPath(b), http.StatusSeeOther)
}

func batchPath(b *batch.Batch) string { return "/batches/" + b.No() }

func (s *handlers) batches() listPage[batch.Batch] {
	return listPage[batch.Batch]{
		spec: console.BatchesList, always: true, read: s.Console.Batches, columns: work.BatchColumns,
	}
}

// batchOf returns the batch in the path.
func (s *handlers) batchOf(c *fiber.Ctx) (*batch.Batch, error) {
	id, ok := batch.ParseNo(c.Params("batch"))
	if !ok {
		return nil, act.ErrNotFound
	}
	return batch.Find(c.UserContext(), s.DB.Read, id)
}

func (s *handlers) batchPage(c *fiber.Ctx) error {
	b, err := s.batchOf(c)
	if err != nil {
		return err
	}
	q, err := rowQuery(c)
	if err != nil {
		return err
	}
	if format, err := web.ReadFormat(c); err != nil {
		return err
	} else if format != "" {
		return s.exportBatch(c, b, q, format)
	}
	ctx, by := c.UserContext(), s.Actor(c)
	d, err := s.planOf(ctx, b)
	if err != nil {
		return err
	}
	d.Typed, d.Second, d.Key = s.Batches.Typed(b), s.Batches.NeedsSecond(b), act.NewKey()
	d.Mine, d.May, d.Filter = b.MadeBy == by.Name, s.Batches.MayRun(by, b), q
	if d.Rows, d.More, err = batch.Rows(ctx, s.DB.Read, b.ID, q); err != nil {
		return err
	}
	if d.RowResults, err = s.Batches.ResultsOf(ctx, b, d.Rows); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, work.BatchPage(s.Page(c), d))
}

// planOf returns what a batch would do, and what came of it: on its own page, and on that of its
// approval.
func (s *handlers) planOf(ctx context.Context, b *batch.Batch) (d work.BatchData, err error) {
	if d.Progress, err = s.progressOf(ctx, b); err != nil {
		return d, err
	}
	if d.Results, err = s.Batches.Results(ctx, b); err != nil {
		return d, err
	}
	d.Breakers, err = s.Console.BatchBreakers(ctx, b)
	return d, err
}

// rowQuery reads which rows of a batch to show.
func rowQuery(c *fiber.Ctx) (batch.RowQuery, error) {
	f := web.ReadFilter(c)
	q := batch.RowQuery{
		State: f.OneOf("state", batch.RowMoves.Words()), Outcome: f.Text("outcome"), Cause: f.Text("cause"),
		Limit: list.PageSize,
	}
	if text := f.Text("after"); text != "" {
		var err error
		if q.After, err = strconv.ParseInt(text, 10, 64); err != nil || q.After < 0 {
			f.Blame("after", "use a number")
		}
	}
	return q, f.Err
}

func (s *handlers) progressOf(ctx context.Context, b *batch.Batch) (work.BatchProgressData, error) {
	causes, err := b.Causes(ctx, s.DB.Read)
	return work.BatchProgressData{Batch: b, Causes: causes, Now: s.DB.Now()}, err
}

// batchTopic is the live panel on the page of a batch.
const batchTopic = "batch"

func (s *handlers) batchTopic() topic {
	return topic{
		Name: batchTopic, Every: time.Second, Ranged: true, Asked: true,
		Read: func(ctx context.Context, no string) (drawing, error) {
			id, _ := batch.ParseNo(no)
			b, err := batch.Find(ctx, s.DB.Read, id)
			if err != nil {
				return nil, err
			}
			d, err := s.progressOf(ctx, b)
			return func(p *ui.Page) templ.Component { return work.BatchProgress(p, d) }, err
		},
	}
}

// onBatch is the route of an act on the batch in the path; read is nil where its form is that of the Kind.
func (s *handlers) onBatch(path, kind string, read func(*fiber.Ctx, *act.Call) error) web.Route {
	return s.onAct(web.ActRoute{
		Path: path, Kind: kind, Read: read, Run: s.Batches.Change, Back: func(of act.Ref) string { return "/batches/" + of.ID },
		Ref: func(c *fiber.Ctx) (act.Ref, error) {
			b, err := s.batchOf(c)
			if err != nil {
				return act.Ref{}, err
			}
			return act.Ref{Row: b.ID, ID: b.No()}, nil
		},
	})
}

// readTyped reads the sums that were typed.
func readTyped(c *fiber.Ctx, call *act.Call) (err error) {
	call.Params, err = json.Marshal(batch.StartParams{Amounts: typedSums(c)})
	return err
}

// typedSums reads the sums that were typed, by currency.
func typedSums(c *fiber.Ctx) map[string]string {
	typed := map[string]string{}
	c.Request().PostArgs().VisitAll(func(name, value []byte) {
		if currency, ok := strings.CutPrefix(string(name), batch.AmountField); ok {
			typed[currency] = string(value)
		}
	})
	return typed
}

// exportBatch streams the rows of a batch as a file.
func (s *handlers) exportBatch(c *fiber.Ctx, b *batch.Batch, q batch.RowQuery, format sheet.Format) error {
	p := s.Page(c)
	return exportEach(s, c, exported[batch.Row]{
		format: format,
		name:   b.No(), filter: c.Request().URI().QueryArgs().String(), page: p, columns: work.BatchRowColumns,
		each: func(fn func(batch.Row) error) error {
			return batch.EachRow(context.Background(), s.DB.Read, b.ID, q, fn) // the request has ended by then
		},
	})
}
