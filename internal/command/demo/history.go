package demo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/notify"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

const (
	// historyDays is how far back the figures begin: a forecast needs 14 days.
	historyDays = 16
	// historyGap is the time before now in which orders that are not stored are marked so: the nightly
	// recount compares the figures of the last 26 hours with their rows.
	historyGap = 28 * time.Hour
	// historyMinutes is the time before now in which the figures are by the minute, as the trends need.
	historyMinutes = time.Hour
	// historyRate is how many orders five minutes had at this time of the day: as many as the demo
	// goes on to create.
	historyRate = defaultRate * 300
	// historyDraws is how many orders of five minutes are drawn: each stands for several, since
	// drawing them all would take a minute.
	historyDraws = 60
	// longestWait is how long the merchants of the past waited at most.
	longestWait = 2 * time.Second
	// historyPart is how many deltas are written by one transaction.
	historyPart = 250
)

// History writes the figures of the last two weeks, as the orders of these days would have left
// them: busy days and quiet nights, weekends, one outage, and the sweep of each night. Of every
// five minutes it stores one order with all its rows, so that a link from a figure leads to some of
// them. urls are the merchants' addresses, by code. It returns how many orders the figures stand for;
// 0 = there are figures of earlier days already.
func History(ctx context.Context, d *db.DB, zone *time.Location, urls map[string]string) (orders int, err error) {
	now := d.Now()
	var earlier []int64
	if err := d.Read.NewRaw("SELECT start FROM report_orders WHERE start < ? LIMIT 1", now-historyGap.Microseconds()).Scan(ctx,
		&earlier); err != nil || len(earlier) > 0 {
		return 0, err
	}
	h := &history{dice: rand.New(rand.NewPCG(14, 0)), zone: zone, now: now, urls: urls}
	if err := h.find(ctx, d); err != nil || len(h.merchants) == 0 || len(h.suppliers) == 0 {
		return 0, err
	}
	if err := d.Tx(ctx, h.sweeps); err != nil {
		return 0, err
	}
	span := report.Fine
	first := now - now%span.Microseconds() - (historyDays * 24 * time.Hour).Microseconds()
	for at := first; at <= now-span.Microseconds(); {
		err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			if err := h.open(ctx, tx, at); err != nil {
				return err
			}
			for range historyPart {
				if at > now-historyMinutes.Microseconds() {
					span = time.Minute
					if err := h.backlog(ctx, tx, at); err != nil {
						return err
					}
				}
				if at > now-span.Microseconds() {
					break
				}
				n, deltas := h.fill(at, span)
				for _, x := range deltas {
					x.Write(w, d)
				}
				orders += n
				at += span.Microseconds()
			}
			h.past.write(w)
			return w.Exec(ctx)
		})
		if err != nil {
			return orders, fmt.Errorf("write the demo's history: %w", err)
		}
	}
	return orders, nil
}

// history is what the figures of the past are made of.
type history struct {
	dice      *rand.Rand
	zone      *time.Location
	now       int64
	urls      map[string]string
	merchants []int64
	shops     []*shop // their declarations, in the same order
	suppliers []pastSupplier
	past      *past
}

// pastSupplier is a supplier of the past.
type pastSupplier struct {
	ID        int64
	Code      string
	AccountID int64 `bun:"account_id"`
}

// currency is that of its orders, as in the demo.
func (s pastSupplier) currency() string {
	if s.Code == codes["stripe"] {
		return "USD"
	}
	return "CNY"
}

// find reads the demo's merchants, in the order of their shares of orders, and its suppliers.
func (h *history) find(ctx context.Context, d *db.DB) error {
	shops := shopList()
	places, names := map[string]int{}, make([]string, len(shops))
	for i, s := range shops {
		places[s.code], names[i] = i, s.code
	}
	var rows []struct {
		ID   int64
		Code string
	}
	if err := d.Read.NewRaw("SELECT id, code FROM merchants WHERE code IN (?)", bun.List(names)).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read the demo's merchants: %w", err)
	}
	if len(rows) < len(shops) {
		return nil
	}
	h.merchants, h.shops = make([]int64, len(shops)), shops
	for _, r := range rows {
		h.merchants[places[r.Code]] = r.ID
	}
	var kinds []string
	for _, code := range codes {
		kinds = append(kinds, code)
	}
	if err := d.Read.NewRaw("SELECT id, code, account_id FROM suppliers WHERE code IN (?) ORDER BY code", bun.List(kinds)).Scan(ctx,
		&h.suppliers); err != nil {
		return fmt.Errorf("read the demo's suppliers: %w", err)
	}
	return nil
}

// shape is how busy a time is: most in the afternoon, less at night and at weekends.
func (h *history) shape(at int64) float64 {
	local := time.UnixMicro(at).In(h.zone)
	hour := float64(local.Hour()) + float64(local.Minute())/60
	shape := 1 + 0.35*math.Sin((hour-9)/24*2*math.Pi)
	if day := local.Weekday(); day == time.Saturday || day == time.Sunday {
		shape *= 0.8
	}
	return shape
}

// isOut reports whether a merchant hangs: one does for an hour, three days ago.
func (h *history) isOut(shop int, at int64) bool {
	ago := time.Duration(h.now-at) * time.Microsecond
	return shop == 2 && ago > 72*time.Hour && ago < 73*time.Hour
}

// backlog writes how many deliveries were due at a minute: hardly any.
func (h *history) backlog(ctx context.Context, tx db.Tx, at int64) error {
	_, err := tx.NewRaw("INSERT INTO report_backlog (start, due) VALUES (?, ?) ON CONFLICT DO NOTHING", at, h.dice.IntN(4)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the backlog of the past: %w", err)
	}
	return nil
}

// fill returns how many orders a span had, and their figures. In the last hours the stored order
// is apart.
func (h *history) fill(at int64, span time.Duration) (int, []*report.Delta) {
	part := float64(span) / float64(report.Fine)
	mean, draws := historyRate*part*h.shape(at)/h.shape(h.now), int(historyDraws*part)
	stands := max(1, int64(math.Round((mean+math.Sqrt(mean)*h.dice.NormFloat64())/float64(draws))))
	x := report.NewDelta(at + longestWait.Microseconds())
	deltas := []*report.Delta{x}
	kept := at%report.Fine.Microseconds() != 0
	for i := range draws {
		shop := min(h.dice.IntN(8), len(h.merchants)-1) // the reliable ones have most orders
		if shop > 2 {
			shop = h.dice.IntN(2)
		}
		through, amount := h.suppliers[h.dice.IntN(len(h.suppliers))], 100+h.dice.Int64N(50_000)
		merchant, supplier, currency := h.merchants[shop], through.ID, through.currency()
		x.Created(at, merchant, supplier, currency, amount)
		x.Callback(supplier, "paid", 1)
		if i%6 == 5 {
			continue // never paid
		}
		x.Paid(at, merchant, supplier, currency, amount)
		took := time.Duration(30+h.dice.IntN(400)) * time.Millisecond
		fails := h.isOut(shop, at) || h.dice.IntN(100) < 3
		if fails {
			x.Attempt(merchant, report.Retried, 5*time.Second)
			x.Failure(string(notify.Timeout), currency, amount, true)
		} else {
			x.Attempt(merchant, report.OK, took)
		}
		x.Lag(merchant, took/4)
		raised := at + h.dice.Int64N(longestWait.Microseconds())
		x.Raised(raised, currency, amount)
		x.Notified(raised, currency, amount)
		if kept || fails {
			continue
		}
		kept = true
		h.past.add(pastOrder{
			merchant: merchant, shop: h.shops[shop], supplier: through, currency: currency, amount: amount, at: raised,
			took: took, url: h.urls[h.shops[shop].code],
		})
		if h.isRecounted(at) {
			stored := report.NewDelta(at + longestWait.Microseconds())
			stored.Raised(raised, currency, amount)
			stored.Notified(raised, currency, amount)
			deltas = append(deltas, stored)
		}
	}
	x.Times(stands)
	x.Unstored = h.isRecounted(at)
	return int(stands) * draws, deltas
}

func (h *history) isRecounted(at int64) bool { return h.now-at < historyGap.Microseconds() }
