package api

import (
	"backstop/internal/access"
	"backstop/internal/console"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) disputeRoutes() []web.Route {
	const path = "/api/v1/admin/disputes"
	return []web.Route{
		reads(path, access.ViewOrders, s.listDisputes, disputesQuery{}, page[dispute.AdminView]{}),
		reads(path+"/:dispute_no", access.ViewOrders, s.getDispute, nil, oneDisputeView{}),
		s.onAct(web.ActRoute{
			Path: path + "/:dispute_no/evidence", Kind: dispute.EvidenceAct, Ref: byID(web.DisputeNo), Answer: oneDisputeView{},
			Then: func(c *fiber.Ctx, done web.Acted) error { return s.showDispute(c, done.Ref.ID) },
		}),
	}
}

type disputesQuery struct {
	DisputeNo string `query:"dispute_no" doc:"The dispute's number, ours or the supplier's."`
	OrderNo   string `query:"order_no" doc:"The order's number."`
	codes
	State string `query:"state" doc:"The dispute's status."`
	paging
}

func (disputesQuery) choices() map[string][]string {
	return map[string][]string{"state": dispute.Moves.Words()}
}

func (s *handlers) listDisputes(c *fiber.Ctx) error {
	return listed(s, c, console.DisputeList, s.Console.Disputes,
		func(d console.Dispute) dispute.AdminView { return s.Disputes.AdminViewOf(&d.Dispute) })
}

// oneDisputeView adds what is returned only for a single dispute.
type oneDisputeView struct {
	dispute.AdminView
	Evidence []evidenceView    `json:"evidence"`
	History  []disputeStepView `json:"history"`
}

// evidenceView is what an operator recorded about a dispute.
type evidenceView struct {
	At   string  `json:"at"`
	By   string  `json:"by"`
	Text string  `json:"text"`
	URL  *string `json:"url"`
}

type disputeStepView struct {
	At      string `json:"at"`
	Status  string `json:"status"`
	Version int64  `json:"version"`
	By      string `json:"by"`
}

func (s *handlers) getDispute(c *fiber.Ctx) error {
	no, err := web.DisputeNo(c)
	if err != nil {
		return err
	}
	return s.showDispute(c, no)
}

func (s *handlers) showDispute(c *fiber.Ctx, no string) error {
	ctx := c.UserContext()
	d, err := dispute.ByNo(ctx, s.DB.Read, no)
	if err != nil {
		return err
	}
	v := oneDisputeView{AdminView: s.Disputes.AdminViewOf(d), Evidence: []evidenceView{}, History: []disputeStepView{}}
	all, err := dispute.EvidenceOf(ctx, s.DB.Read, d.ID)
	if err != nil {
		return err
	}
	for _, e := range all {
		v.Evidence = append(v.Evidence, evidenceView{
			At: notify.Stamp(e.CreatedAt), By: e.Actor, Text: console.MaskText(e.Text),
			URL: orNull(e.URL),
		})
	}
	steps, err := booking.History(ctx, s.DB.Read, booking.OfDispute, d.ID)
	if err != nil {
		return err
	}
	for _, h := range steps {
		v.History = append(v.History, disputeStepView{At: notify.Stamp(h.CreatedAt), Status: h.To, Version: h.Version, By: h.Actor})
	}
	return c.JSON(v)
}
