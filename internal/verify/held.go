package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/approval"
	"backstop/internal/base/moves"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// approvedIs is the condition for an approval p that has taken effect, or is about to.
var approvedIs = approval.Moves.In("p.state", approval.Executing, approval.Done)

// heldClaims: held money moved from a supplier to its own suspense account, and what left it by
// a decision has its approval.
func heldClaims() []claim {
	const approvalID = "CASE WHEN trim(substr(x.ref, 11), '0123456789') = '' AND length(x.ref) BETWEEN 11 AND 29 THEN CAST(substr(x.ref, 11) AS BIGINT) ELSE 0 END"
	return []claim{
		{
			table: "transfers", where: "x.ref LIKE 'held:%'",
			wrong: "(SELECT count(*) FROM accounts b JOIN accounts c ON c.code = 'suspense:' || substr(b.code, 10) WHERE b.id = x.debit_account AND c.id = x.credit_account AND b.code LIKE 'supplier:%') <> 1",
			what:  "'entry ' || x.ref || ' is not from a supplier to its suspense'",
		},
		{
			table: "transfers", where: "x.ref LIKE 'elsewhere:%'",
			wrong: "(SELECT count(*) FROM approvals p WHERE p.id = " + approvalID + " AND " + approvedIs + ") = 0",
			what:  "'entry ' || x.ref || ' has no approval'",
		},
	}
}

// heldException is the checked part of an exception about money.
type heldException struct {
	ID        int64
	Kind      string
	State     exception.State
	Amount    int64
	Currency  string
	Payload   string
	HeldRef   string
	Outcome   exception.Outcome
	DecidedBy int64

	// From the message, or from HeldRef if there is none.
	ref     string
	account int64
	trade   string
	paid    bool
}

// read reads the stored message.
func (x *heldException) read() error {
	if x.Payload != "" {
		var m struct {
			Account   int64           `json:"account,string"`
			EventKey  string          `json:"event_key"`
			Reference string          `json:"reference"`
			TradeNo   string          `json:"trade_no"`
			Amount    int64           `json:"amount"`
			Status    supplier.Status `json:"status"`
		}
		if err := json.Unmarshal([]byte(x.Payload), &m); err != nil {
			return fmt.Errorf("read the message of the exception %d: %w", x.ID, err)
		}
		if m.Reference == "" {
			m.Reference = m.EventKey
		}
		x.ref, x.account, x.trade = payment.HeldRef(m.Account, m.TradeNo, m.Reference), m.Account, m.TradeNo
		x.paid = m.Status == supplier.Paid && m.Amount > 0 && exception.InSuspense(x.Kind)
	}
	if x.HeldRef != "" {
		account, trade, _ := strings.Cut(strings.TrimPrefix(x.HeldRef, "held:"), ":")
		x.account, _ = strconv.ParseInt(account, 10, 64)
		x.trade = trade
	}
	return nil
}

// held compares the exceptions about money with the ledger: what a supplier reported as paid is
// booked, in suspense or for an order, and suspense equals what is held for open exceptions and
// for decided ones whose money has not moved yet.
func (r *run) held(ctx context.Context, i *Invariant) (map[string]string, error) {
	wrong := map[string]string{}
	var last int64
	if err := r.db.Read.NewRaw("SELECT coalesce(max(id), 0) FROM exceptions").Scan(ctx, &last); err != nil {
		return nil, fmt.Errorf("read exceptions: %w", err)
	}
	err := r.paged(ctx, "exceptions", "id", last, func(from, to int64) error {
		return r.probing(ctx, func(ctx context.Context, tx bun.IDB) error {
			var rows []heldException
			err := tx.NewRaw("SELECT x.id, x.kind, x.state, x.amount, x.currency, x.payload, x.held_ref, x.outcome, x.decided_by"+
				" FROM exceptions AS x WHERE x.id > ? AND x.id <= ? AND ("+moves.Words("x.kind", exception.SuspenseKinds...)+
				" OR x.held_ref <> '')", from, to).Scan(ctx, &rows)
			if err != nil {
				return fmt.Errorf("read exceptions: %w", err)
			}
			i.Examined += int64(len(rows))
			for part := range slices.Chunk(rows, 500) {
				if err := checkHeld(ctx, tx, part, wrong); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return wrong, r.db.Snapshot(ctx, func(ctx context.Context, tx bun.IDB) error {
		return compareSuspense(ctx, tx, i, wrong)
	})
}

// checkHeld finds what is wrong with some exceptions.
func checkHeld(ctx context.Context, tx bun.IDB, rows []heldException, wrong map[string]string) error {
	var refs, trades []string
	for n := range rows {
		x := &rows[n]
		if err := x.read(); err != nil {
			return err
		}
		refs, trades = append(refs, x.ref, x.HeldRef), append(trades, x.trade)
	}
	var booked []string
	if err := tx.NewRaw("SELECT t.ref FROM transfers AS t WHERE t.ref IN (?)", bun.List(refs)).Scan(ctx, &booked); err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	var settled []struct {
		AccountID int64
		TradeNo   string
	}
	err := tx.NewRaw(
		"SELECT a.account_id, a.supplier_trade_no AS trade_no FROM payment_attempts AS a JOIN orders AS o ON o.id = a.order_id WHERE a.supplier_trade_no IN (?)"+
			" AND "+payment.Moves.In("a.status", payment.Settled...)+" AND a.supplier_trade_no <> '' AND a.status = ? AND "+
			order.Moves.In("o.status", order.Paid),
		bun.List(trades), payment.Succeeded).Scan(ctx, &settled)
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	for _, x := range rows {
		pays := false
		for _, s := range settled {
			pays = pays || s.AccountID == x.account && s.TradeNo == x.trade
		}
		stays := x.DecidedBy != 0 && (x.Outcome == exception.KeepSurplus || x.Outcome == exception.OweBack)
		name := fmt.Sprintf("exception %d (%s, %d %s)", x.ID, x.Kind, x.Amount, x.Currency)
		switch {
		case x.paid && !pays && !slices.Contains(booked, x.ref):
			wrong[name] = name + " is about money that was paid, which is not booked"
		case x.HeldRef == "":
		case !slices.Contains(booked, x.HeldRef):
			wrong[name] = fmt.Sprintf("%s names the entry %s, which is not stored", name, x.HeldRef)
		case pays:
			wrong[name] = fmt.Sprintf("%s holds %s, which has paid an order", name, x.HeldRef)
		case !x.State.Open() && !stays:
			wrong[name] = fmt.Sprintf("%s is %s, but its money is still held as %s", name, x.State, x.HeldRef)
		}
	}
	return nil
}

// compareSuspense compares the balances of suspense with what exceptions hold.
func compareSuspense(ctx context.Context, tx bun.IDB, i *Invariant, wrong map[string]string) error {
	var rows []struct {
		ID             int64
		Code, Currency string
		Balance, Held  int64
	}
	err := tx.NewRaw(
		"SELECT a.id, a.code, a.currency, a.balance, coalesce((SELECT CAST(sum(t.amount - ("+payment.TakenOfHeld("t.ref")+")) AS BIGINT) FROM (SELECT DISTINCT x.held_ref FROM exceptions AS x WHERE x.held_ref <> '') AS h"+
			" JOIN transfers AS t ON t.ref = h.held_ref WHERE t.credit_account = a.id), 0) AS held FROM accounts AS a WHERE a.code LIKE ? ORDER BY a.id",
		ledger.SuspenseAccount("%")).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read suspense: %w", err)
	}
	where, from, err := ledger.Unfolded(ctx, tx)
	if err != nil {
		return err
	}
	tail, err := ledger.Sums(ctx, tx, where, from)
	if err != nil {
		return err
	}
	i.Examined += int64(len(rows))
	for _, a := range rows {
		if has := a.Balance + tail[a.ID]; has != a.Held {
			name := a.Code + " " + a.Currency
			wrong[name] = fmt.Sprintf("account %s has %d, the exceptions hold %d", name, has, a.Held)
		}
	}
	return nil
}
