package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"

	"backstop/internal/command/bench"
)

const (
	feesCode = "bench-fees" // code of the supplier that charges fees
	// withFees is the first of the merchants that pay fees, as many as those that pay none.
	// longMerchant is the one whose account has many lines.
	withFees     = bench.Merchants
	longMerchant = 2 * bench.Merchants
	// paidOut is the amount of a payout, in minor units. Each merchant's opening balance is far
	// more than all of its payouts.
	paidOut        = 100
	openingBalance = 1_000_000_000
)

// declare adds fees, and what payouts need, to a declaration.
func (p *payer) declare(all map[string]any, merchants, suppliers []map[string]any) {
	for i := withFees; i < longMerchant; i++ {
		merchants[i]["fees"] = []map[string]any{{"supplier": "*", "rate": "1.2%", "fixed": 10}}
	}
	var targets, balances []map[string]any
	for i, key := range p.keys {
		merchants[i]["payout_key"] = key
		merchants[i]["limits"] = []map[string]any{{"currency": "CNY", "payout_auto": paidOut}}
		targets = append(targets, map[string]any{
			"merchant": bench.MerchantCode(i), "code": "main", "kind": "bank_card", "holder": "Bench", "number": "6222000011114711",
			"bank": "ICBC",
		})
		balances = append(balances, map[string]any{"merchant": bench.MerchantCode(i), "currency": "CNY", "balance": openingBalance})
	}
	charging := map[string]any{
		"code": feesCode, "kind": "sortedparams", "enabled": true, "config": p.cast.Config(),
		"fees": map[string]any{"rate": "0.6%"},
	}
	all["suppliers"] = append(suppliers, charging, p.supplier)
	all["payout_accounts"], all["accounts"] = targets, balances
}

// funds measures paid orders with and without fees, payouts, and the balance and the statement of
// a merchant whose account has many lines.
func funds(ctx context.Context, b *bench.Bench, e bench.Target) error {
	payer, err := openPayer()
	if err != nil {
		return err
	}
	defer payer.close()
	rounds := cmp.Or(b.Options.Rounds, bench.DefaultRounds)
	size := max(b.Options.Orders/rounds, 1)
	total := (1 + rounds*len(charged)) * size
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	s := &subject{&bench.Subject{
		Bench: b, Target: e, Cast: bench.NewCast(bench.Merchants + 1), Calls: make([]bench.Post, total),
		Extra: payer.settings(hex.EncodeToString(key)),
	}}
	payer.cast, s.Cast.More = s.Cast, payer.declare
	for range bench.Merchants {
		payer.keys = append(payer.keys, "sk_pay_bench_"+bench.Secret())
	}
	end, err := s.Open(ctx, total)
	if err != nil {
		return err
	}
	defer end()
	d, err := s.OpenData()
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
	if err := s.longAccount(ctx, d, heldOrders); err != nil {
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
		code, first := bench.SupplierCode, 0
		if kind == len(charged)-1 {
			code, first = feesCode, withFees
		}
		if _, err := bench.ClosedLoop(ctx, bench.Connections, size, func(i int) error {
			return s.MakeOrderAt(code, first+i%bench.Merchants, from+i, s.Sink.URL("/n"))
		}); err != nil {
			return 0, 0, fmt.Errorf("make orders: %w", err)
		}
		if err := s.Calm(ctx); err != nil {
			return 0, 0, err
		}
		before, err := s.CPU()
		if err != nil {
			return 0, 0, err
		}
		took, err := s.Pay(ctx, from, next)
		if err != nil {
			return 0, 0, err
		}
		after, err := s.CPU()
		s.Sink.Orders.Clear()
		clear(s.Calls[from:next])
		return float64(size) / took.Seconds(), float64((after.Server - before.Server).Microseconds()) / float64(size), err
	}
	if _, _, err := burst(0); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	perSecond, cpu := make([][]float64, len(charged)), make([][]float64, len(charged))
	for round := range rounds {
		for i := range charged {
			kind := (round + i) % len(charged)
			s.Progress("%s: round %d of %d, %s", s.Name, round+1, rounds, charged[kind])
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
		by := bench.SpreadOf(perSecond[kind])
		s.Add(fmt.Sprintf("orders end to end, %s (%.4g–%.4g), median", name, by.Lowest, by.Highest), "/s", by.Median, 0)
		s.Add(bench.CPUName("server, "+name+", median"), "µs", bench.SpreadOf(cpu[kind]).Median, 0)
	}
	for kind, name := range charged[1:] {
		times := make([]float64, len(perSecond[0]))
		for r := range times {
			times[r] = perSecond[kind+1][r] / perSecond[0][r]
		}
		by := bench.SpreadOf(times)
		f := bench.Figure{Group: s.Name, Name: fmt.Sprintf("orders end to end, %s, times those without, by round (%.2f–%.2f), median", name,
			by.Lowest, by.Highest), Value: by.Median}
		if kind == len(charged)-2 {
			f = f.AtLeast(0.95, "≥ 0.95")
		}
		s.Report.Add(f)
	}
}
