package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
)

const (
	feesCode = "bench-fees" // code of the supplier that charges fees
	// withFees is the first of the merchants that pay fees, as many as those that pay none.
	// longMerchant is the one whose account has many lines.
	withFees     = merchants
	longMerchant = 2 * merchants
	// paidOut is the amount of a payout, in minor units. Each merchant's opening balance is far
	// more than all of its payouts.
	paidOut        = 100
	openingBalance = 1_000_000_000
)

// fundsCast is what the funds part declares in addition.
type fundsCast struct {
	payoutKeys []string // by merchant
	payouts    map[string]any
}

// declare adds fees, and what payouts need, to a declaration.
func (f *fundsCast) declare(c *cast, all map[string]any, merchants, suppliers []map[string]any) {
	for i := withFees; i < longMerchant; i++ {
		merchants[i]["fees"] = []map[string]any{{"supplier": "*", "rate": "1.2%", "fixed": 10}}
	}
	var targets, balances []map[string]any
	for i, key := range f.payoutKeys {
		merchants[i]["payout_key"] = key
		merchants[i]["limits"] = []map[string]any{{"currency": "CNY", "payout_auto": paidOut}}
		targets = append(targets, map[string]any{
			"merchant": merchantCode(i), "code": "main", "kind": "bank_card", "holder": "Bench", "number": "6222000011114711",
			"bank": "ICBC",
		})
		balances = append(balances, map[string]any{"merchant": merchantCode(i), "currency": "CNY", "balance": openingBalance})
	}
	charging := map[string]any{
		"code": feesCode, "kind": "sortedparams", "enabled": true, "config": c.config(),
		"fees": map[string]any{"rate": "0.6%"},
	}
	all["suppliers"] = append(suppliers, charging, f.payouts)
	all["payout_accounts"], all["accounts"] = targets, balances
}

// funds measures paid orders with and without fees, payouts, and the balance and the statement of
// a merchant whose account has many lines.
func (b *bench) funds(ctx context.Context, e engine) error {
	payer, err := openPayer()
	if err != nil {
		return err
	}
	defer payer.close()
	rounds := cmp.Or(b.o.Rounds, defaultRounds)
	size := max(b.o.Orders/rounds, 1)
	total := (1 + rounds*len(charged)) * size
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	s := &subject{
		bench: b, engine: e, cast: newCast(merchants + 1), calls: make([]post, total),
		extra: payer.settings(hex.EncodeToString(key)),
	}
	s.cast.funds = &fundsCast{payouts: payer.supplier}
	for range merchants {
		s.cast.funds.payoutKeys = append(s.cast.funds.payoutKeys, "sk_pay_bench_"+secret())
	}
	end, err := s.open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	d, err := s.openData()
	if err != nil {
		return err
	}
	defer d.Close()
	if err := s.fees(ctx, d, rounds, size); err != nil {
		return fmt.Errorf("orders with fees: %w", err)
	}
	if err := s.payouts(ctx, d, payer, rounds, size); err != nil {
		return fmt.Errorf("payouts: %w", err)
	}
	if err := s.longAccount(ctx, d); err != nil {
		return fmt.Errorf("an account with many lines: %w", err)
	}
	return nil
}

// charged are the kinds of bursts: two without fees, whose difference is the noise of the
// measurement, and one with.
var charged = []string{"without fees", "without fees, again", "with fees"}

// fees pays bursts of orders without and with fees, in changing order.
func (s *subject) fees(ctx context.Context, d *sql.DB, rounds, size int) error {
	next := 0
	burst := func(kind int) (perSecond, cpu float64, err error) {
		from := next
		next += size
		code, first := supplierCode, 0
		if kind == len(charged)-1 {
			code, first = feesCode, withFees
		}
		if _, err := closedLoop(ctx, connections, size, func(i int) error {
			return s.makeOrderAt(code, first+i%merchants, from+i, s.sink.url("/n"))
		}); err != nil {
			return 0, 0, fmt.Errorf("make orders: %w", err)
		}
		if err := s.calm(ctx); err != nil {
			return 0, 0, err
		}
		before, err := s.cpu()
		if err != nil {
			return 0, 0, err
		}
		took, err := s.pay(ctx, from, next)
		if err != nil {
			return 0, 0, err
		}
		after, err := s.cpu()
		s.sink.orders.Clear()
		clear(s.calls[from:next])
		return float64(size) / took.Seconds(), float64((after.server - before.server).Microseconds()) / float64(size), err
	}
	if _, _, err := burst(0); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	perSecond, cpu := make([][]float64, len(charged)), make([][]float64, len(charged))
	for round := range rounds {
		for i := range charged {
			kind := (round + i) % len(charged)
			s.progress("%s: round %d of %d, %s", s.name, round+1, rounds, charged[kind])
			rate, used, err := burst(kind)
			if err != nil {
				return err
			}
			perSecond[kind], cpu[kind] = append(perSecond[kind], rate), append(cpu[kind], used)
		}
	}
	// Each order must have been charged, or the bursts measured the same thing.
	for _, ref := range []string{"fee", "cost"} {
		var n int
		if err := d.QueryRowContext(ctx, "SELECT count(*) FROM transfers WHERE ref LIKE '"+ref+":%'").Scan(&n); err != nil {
			return fmt.Errorf("count the fees: %w", err)
		}
		if n != rounds*size {
			return fmt.Errorf("%d orders have a transfer %s:…, want %d", n, ref, rounds*size)
		}
	}
	s.reportFees(perSecond, cpu)
	return nil
}

func (s *subject) reportFees(perSecond, cpu [][]float64) {
	for kind, name := range charged {
		by := spreadOf(perSecond[kind])
		s.add(fmt.Sprintf("orders end to end, %s (%.4g–%.4g), median", name, by.Lowest, by.Highest), "/s", by.Median, 0)
		s.add(cpuName("server, "+name+", median"), "µs", spreadOf(cpu[kind]).Median, 0)
	}
	for kind, name := range charged[1:] {
		times := make([]float64, len(perSecond[0]))
		for r := range times {
			times[r] = perSecond[kind+1][r] / perSecond[0][r]
		}
		by := spreadOf(times)
		f := figure{Group: s.name, Name: fmt.Sprintf("orders end to end, %s, times those without, by round (%.2f–%.2f), median", name,
			by.Lowest, by.Highest), Value: by.Median}
		if kind == len(charged)-2 {
			f = f.atLeast(0.95, "≥ 0.95")
		}
		s.report.add(f)
	}
}
