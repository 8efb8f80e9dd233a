package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

// Acts are the dependencies of acts on notifications and endpoints.
type Acts struct {
	DB        *db.DB
	Directory func() *merchant.Directory
	Breakers  *breaker.Cache
	// Nudge wakes the workers for due notifications. It must not block.
	Nudge func([]queue.Nudge)
	Pings Pinger
}

// Kinds returns the acts.
func (a Acts) Kinds() []act.Kind {
	return []act.Kind{
		a.Resending(),
		a.pinging("merchant", a.merchant),
		a.pinging("subscription", func(code string) *merchant.Merchant { return a.Directory().Subscriber(code) }),
		a.enabling(),
	}
}

func (a Acts) merchant(code string) *merchant.Merchant { return a.Directory().ByCode(code) }

// ErrShadow means that nobody is notified in shadow mode.
var ErrShadow = errors.New("shadow mode: nobody is notified")

// ResendAct is the audit name of resending a notification.
const ResendAct = "notification.resend"

// How to resend a notification that its breaker holds back.
const (
	ResendQueue = "queue" // it waits; the default
	ResendProbe = "probe" // it is sent as the probe
	ResendClose = "close" // the breaker is closed
)

// Results lists the results of resent notifications, in display order.
var Results = []string{ResultNotified, ResultRefused, ResultWaiting}

// Results of deliveries.
const (
	ResultNotified = "notified"
	ResultRefused  = "refused" // its last attempt failed
	ResultWaiting  = "waiting" // for its turn, the end of an attempt, or a breaker
)

type resendParams struct {
	How string `json:"how" choices:"queue|probe|close" says:"choose queue, probe or close" says_zh:"请选择排队、试投或恢复"`
}

// Resending resends notifications. Ref.Row is a delivery; it may be 0 if ID is the order's
// number and Part the notification's id, which selects the Neediest delivery. Without an ID, Part
// is for the audit alone. Errors:
// ErrSending, ErrShadow, breaker.ErrProbing.
func (a Acts) Resending() act.Kind {
	return act.Kind{
		Name: ResendAct, Object: "order", Permission: access.Resend, OfMerchant: true, Load: a.load, ExtraPermission: resendNeeds,
		Do: a.resend, Params: act.ParamsOf[resendParams](),
		Set: &act.Set{
			Action: "resend", Object: BatchObject, Permission: access.ResendMany, Scope: access.Compensate,
			Results: a.results, ResultsOf: a.resultsOf,
		},
	}
}

// resendNeeds returns the permission to move the breaker, if that is needed too: to close it,
// or to probe if an operator opened it.
func resendNeeds(s act.Subject, params any) access.Permission {
	held := s.Value.(*resendable).held
	switch how := params.(resendParams).How; {
	case how == ResendClose, how == ResendProbe && held != nil && held.ByHand:
		return access.ControlBreakers
	}
	return ""
}

// resendable is a delivery that may be resent.
type resendable struct {
	Delivery      `bun:",extend"`
	OrderNo       string `bun:"order_no"`
	SellerID      int64  `bun:"seller_id"`      // the order's merchant
	Money         int64  `bun:"money"`          // at risk, or the order's amount
	MoneyCurrency string `bun:"money_currency"` // of Money

	publicID string       `bun:"-"` // if the Ref has it
	held     *breaker.Row `bun:"-"` // the breaker that holds it back; nil = none
}

func selectResendable(q bun.IDB, rows *[]*resendable) *bun.SelectQuery {
	// A plan reads a hundred thousand: no column that nothing here uses.
	return q.NewSelect().Model(rows).Column("d.id", "d.recipient_id", "d.to_subscriber", "d.event_type", "d.url", "d.status",
		"d.next_at").ColumnExpr("COALESCE(o.order_no, '') AS order_no, COALESCE(o.merchant_id, d.recipient_id) AS seller_id," +
		" CASE WHEN d.currency <> '' THEN d.amount ELSE COALESCE(o.amount, 0) END AS money, COALESCE(NULLIF(d.currency, ''), o.currency, '') AS money_currency").
		Join("LEFT JOIN orders AS o ON o.id = d.subject_id").OrderExpr("d.id")
}

func (a Acts) load(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	var rows []*resendable
	var ids []int64
	public := map[int64]string{}
	for _, r := range refs {
		if r.ID == "" {
			ids, public[r.Row] = append(ids, r.Row), r.Part
			continue
		}
		x, err := findResendable(ctx, q, r)
		if err != nil {
			return nil, err
		}
		if x != nil {
			rows = append(rows, x)
		}
	}
	if len(ids) > 0 {
		var found []*resendable
		if err := selectResendable(q, &found).Where("d.id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
			return nil, fmt.Errorf("read notifications: %w", err)
		}
		for _, x := range found {
			x.publicID = public[x.ID]
		}
		rows = append(rows, found...)
	}
	return a.subjects(ctx, q, rows)
}

// findResendable returns the delivery of an order's notification that a Ref names, or the
// Neediest; nil = none.
func findResendable(ctx context.Context, q bun.IDB, r act.Ref) (*resendable, error) {
	event, err := FindEvent(ctx, q, r.Part)
	if errors.Is(err, ErrNoDelivery) {
		return nil, invalid.Field("notification", text.Text{ZH: "没有这条通知", EN: "no notification has this id"})
	}
	if err != nil {
		return nil, err
	}
	var rows []*resendable
	if err := selectResendable(q, &rows).Where("o.order_no = ?", r.ID).Where("d.event_id = ?", event.ID).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the deliveries of a notification: %w", err)
	}
	all := make([]*Delivery, len(rows))
	for i, x := range rows {
		x.publicID, all[i] = r.Part, &x.Delivery
	}
	if r.Row == 0 && len(rows) > 0 {
		r.Row = Neediest(all).ID
	}
	if i := slices.IndexFunc(rows, func(x *resendable) bool { return x.ID == r.Row }); i >= 0 {
		return rows[i], nil
	}
	return nil, nil
}

// subjects converts deliveries, with the breakers that hold them back.
func (a Acts) subjects(ctx context.Context, q bun.IDB, rows []*resendable) ([]act.Subject, error) {
	var recipients []recipient.Recipient
	for _, x := range rows {
		if to := x.Recipient(); !slices.Contains(recipients, to) {
			recipients = append(recipients, to)
		}
	}
	breakers, err := breaker.ReadAll(ctx, q, recipients)
	if err != nil {
		return nil, err
	}
	subjects, directory := make([]act.Subject, len(rows)), a.Directory()
	for i, x := range rows {
		if r := breakers[x.RecipientID]; Waits(r, directory, &x.Delivery) {
			x.held = r
		}
		subjects[i] = act.Subject{
			Row: x.ID, ID: x.OrderNo, OrderNo: x.OrderNo, MerchantID: x.SellerID, Amount: x.Money, Currency: x.MoneyCurrency,
			Effect: x.effect(), Value: x,
		}
	}
	return subjects, nil
}

// effect returns what a batch would do. A ping is never resent: its requester no longer waits
// for the answer.
func (x *resendable) effect() act.Effect {
	switch {
	case x.EventType == Ping, x.Status == Delivered, x.Status == Skipped:
		return act.Final
	case x.Status == Sending:
		return act.Blocked
	case x.held != nil:
		return act.Waits
	case x.Status == Queued:
		return act.Blocked // it is about to be sent
	}
	return act.Will
}

func (a Acts) resend(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
	if a.Directory().Shadow {
		return slices.Repeat([]act.Outcome{{Effect: act.Final, Err: ErrShadow}}, len(subjects)), nil
	}
	as, how := make(map[int64]Status, len(subjects)), in.Params.(resendParams).How
	for _, s := range subjects {
		as[s.Row] = s.Value.(*resendable).Status
	}
	if len(subjects) > 1 && how != "" && how != ResendQueue {
		return nil, invalid.Field("how", text.Text{ZH: "多条通知只能排队", EN: "several notifications can only be queued"})
	}
	nudges, refused, err := resendAll(ctx, tx, a.DB, as)
	if err != nil {
		return nil, err
	}
	outs := make([]act.Outcome, len(subjects))
	for i, s := range subjects {
		switch err := refused[s.Row]; {
		case errors.Is(err, ErrSending):
			outs[i] = act.Outcome{Effect: act.Blocked, Err: err}
		case err != nil:
			outs[i] = act.Outcome{Effect: act.Final, Err: err}
		default:
			if outs[i], err = a.pastBreaker(ctx, tx, in, s.Value.(*resendable), how); err != nil {
				return nil, err
			}
		}
	}
	if len(subjects) == 1 {
		if err := a.pastWait(ctx, tx, subjects[0].Row); err != nil {
			return nil, err
		}
	}
	tx.OnEnd(func(err error) {
		if err == nil {
			a.Nudge(nudges)
		}
	})
	return outs, nil
}

// pastWait lets a resent delivery be sent although an address asks us to wait. Several wait.
func (a Acts) pastWait(ctx context.Context, tx db.Tx, id int64) error {
	_, err := tx.NewRaw("UPDATE deliveries SET last_class = ? WHERE id = ? AND status = ? AND EXISTS"+
		" (SELECT 1 FROM endpoint_waits AS w WHERE w.recipient_id = deliveries.recipient_id AND w.until > ?)",
		Resent, id, RetryWait, a.DB.Now()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("send past a wait: %w", err)
	}
	return nil
}

// pastBreaker moves the breaker that holds a delivery back, as the actor chose. A breaker that
// has closed meanwhile holds nothing back.
func (a Acts) pastBreaker(ctx context.Context, tx db.Tx, in act.Input, x *resendable, how string) (act.Outcome, error) {
	out := act.Outcome{Effect: act.Will, Details: map[string]any{"delivery": strconv.FormatInt(x.ID, 10)}}
	if x.publicID != "" {
		out.Details["notification"] = x.publicID
	}
	if x.held == nil {
		return out, nil
	}
	out.Effect, out.Details["how"] = act.Waits, ResendQueue
	var err error
	switch how {
	case ResendProbe:
		err = a.Breakers.ProbeWith(ctx, tx, x.Recipient(), x.ID, in.By.Name, in.Reason)
	case ResendClose:
		m := a.Directory().ByID(x.RecipientID)
		if m == nil {
			return out, act.ErrNotFound
		}
		err = a.Breakers.ByOperator(ctx, tx, x.Recipient(), breaker.CloseIt, in.By.Name, in.Reason)
		out.ExtraAudit = []audit.Act{{Action: breaker.MoveAct(breaker.CloseIt), Object: "merchant", ObjectID: m.Code}}
	default:
		return out, nil
	}
	out.Details["how"] = how
	if errors.Is(err, breaker.ErrAlready) {
		out.ExtraAudit, err = nil, nil
	}
	return out, err
}
