package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/queue"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// resend sends one of the order's notifications again. Where the merchant's breaker
// holds it back, the person chooses what becomes of that.
func (s *handlers) resend(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	id := web.Field(c, "notification")
	event, err := notify.FindEvent(ctx, s.DB, id)
	if errors.Is(err, notify.ErrNoDelivery) {
		return web.InvalidField("notification", "no notification has this id")
	}
	if err != nil {
		return err
	}
	r := &resending{
		s: s, actor: "operator:" + web.Operator(c).Name, remote: s.Client(c).String(), reason: web.Field(c, "reason"), how: web.Field(c, "how"),
		controls: s.Policy.Allows(web.Operator(c).Role, access.ControlBreakers),
	}
	switch r.how {
	case "", pages.ResendQueue, pages.ResendProbe:
	case pages.ResendClose:
		if !r.controls {
			return web.ErrForbidden
		}
	default:
		return web.InvalidField("how", "choose queue, probe or close")
	}
	act := audit.Act{Action: console.ResendAct, Object: "order", ObjectID: no, Params: map[string]any{"notification": id}}
	did, err := s.act(ctx, c, act, func(ctx context.Context, tx db.Tx) error {
		x, err := deliveryOf(ctx, tx, no, event.ID, web.Field(c, "delivery"))
		if err != nil {
			return err
		}
		act.Params["delivery"] = strconv.FormatInt(x.ID, 10)
		return r.do(ctx, tx, x, act.Params)
	})
	if err != nil {
		return err
	}
	if did {
		r.committed()
	}
	return c.Redirect("/orders/"+url.PathEscape(no), http.StatusSeeOther)
}

// deliveryOf is the delivery that a form names, or of several of the event the one that
// needs it most.
func deliveryOf(ctx context.Context, tx db.Tx, orderNo string, event int64, named string) (*notify.Delivery, error) {
	var rows []*notify.Delivery
	err := tx.NewSelect().Model(&rows).Where("d.subject_id = (SELECT o.id FROM orders AS o WHERE o.order_no = ?)", orderNo).
		Where("d.event_id = ?", event).Scan(ctx)
	if err != nil {
		return nil, err
	}
	if named == "" && len(rows) > 0 {
		return notify.Neediest(rows), nil
	}
	for _, x := range rows {
		if strconv.FormatInt(x.ID, 10) == named {
			return x, nil
		}
	}
	return nil, notify.ErrNoDelivery
}

// resending is one act of sending again.
type resending struct {
	s                          *handlers
	actor, remote, reason, how string
	controls                   bool // the person may open and close breakers
	nudge                      queue.Nudge
	folded                     *breaker.Folded
}

// do makes the delivery due, and moves the breaker that would hold it back as the
// person chose. One that has closed meanwhile holds back nothing.
func (r *resending) do(ctx context.Context, tx db.Tx, x *notify.Delivery, params map[string]any) (err error) {
	if r.nudge, err = notify.Resend(ctx, tx, r.s.DB, x.ID); err != nil {
		return err
	}
	b, err := breaker.Read(ctx, tx, x.MerchantID)
	if err != nil || !notify.Waits(b, r.s.Settings.Merchants(), x) {
		return err
	}
	params["how"] = pages.ResendQueue
	switch r.how {
	case pages.ResendProbe:
		if b.ByHand && !r.controls {
			return web.ErrForbidden
		}
		r.folded, err = r.s.Breakers.ProbeWith(ctx, tx, x.MerchantID, x.ID, r.actor, r.reason)
	case pages.ResendClose:
		if r.folded, err = r.s.Breakers.ByPerson(ctx, tx, x.MerchantID, breaker.CloseIt, r.actor, r.reason); err == nil {
			err = r.closed(ctx, tx, x.MerchantID)
		}
	default:
		return nil
	}
	params["how"] = r.how
	if errors.Is(err, breaker.ErrAlready) {
		return nil
	}
	return err
}

// closed keeps the closing of a breaker as the act on its merchant that it is.
func (r *resending) closed(ctx context.Context, tx db.Tx, merchantID int64) error {
	m := r.s.Settings.Merchants().ByID(merchantID)
	if m == nil {
		return console.ErrNotFound
	}
	return r.s.Audit.Write(ctx, tx, audit.Act{
		Actor: r.actor, Action: "breaker.close", Object: "merchant", ObjectID: m.Code, Params: map[string]any{"reason": r.reason}, Remote: r.remote,
	})
}

// committed makes known what was done.
func (r *resending) committed() {
	if r.folded != nil {
		r.s.Breakers.Committed(r.folded)
		for _, c := range r.folded.Changes {
			metric.BreakerChanges.WithLabelValues(string(c.To)).Inc()
		}
	}
	r.s.Nudge([]queue.Nudge{r.nudge})
}
