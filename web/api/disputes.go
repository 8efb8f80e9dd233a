package api

import (
	"encoding/json"
	"net/http"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) disputeRoutes() []web.Route {
	const path = "/api/v1/admin/disputes"
	read := func(path string, h fiber.Handler) web.Route {
		return web.Route{
			Method: http.MethodGet, Path: path, Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewOrders,
			Handler: h,
		}
	}
	return []web.Route{
		read(path, s.listDisputes),
		read(path+"/:dispute_no", s.getDispute),
		{
			Method: http.MethodPost, Path: path + "/:dispute_no/evidence", Audience: web.ForMonitor,
			Permission: s.Acts.Kind(dispute.EvidenceAct).Permission, Person: true, Handler: s.addEvidence,
		},
	}
}

func (s *handlers) listDisputes(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	f.Only("dispute_no", "order_no", "supplier", "merchant", "state", "cursor", "limit")
	q := list.Query{Spec: console.DisputeList, Scope: list.All()}.With("dispute_no", f.Text("dispute_no")).With("order_no",
		f.Text("order_no")).
		With("state", f.OneOf("state", dispute.Moves.Words()))
	found, err := readCoded(s, c, f, q, sliceOf(f), s.Console.Disputes)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(found.Rows, found.Older.ID,
		func(d console.Dispute) dispute.AdminView { return s.Disputes.AdminViewOf(&d.Dispute) }))
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

// addEvidence records evidence about a dispute. Nothing is sent to the supplier.
func (s *handlers) addEvidence(c *fiber.Ctx) error {
	no, err := web.DisputeNo(c)
	if err != nil {
		return err
	}
	f, err := readForm(c.Request().Body(), "text", "url")
	if err != nil {
		return err
	}
	params, err := json.Marshal(map[string]string{"text": f.text("text", true, maxEvidenceBytes), "url": f.text("url", false, maxURL)})
	if f.err != nil {
		return f.err
	}
	if err != nil {
		return err
	}
	if _, err := s.Acts.Run(c.UserContext(), act.Call{
		Kind: dispute.EvidenceAct, By: s.Actor(c), Ref: act.Ref{ID: no},
		Params: params,
	}); err != nil {
		return err
	}
	return s.showDispute(c, no)
}

// maxEvidenceBytes bounds the text of evidence; its characters are counted by the act.
const maxEvidenceBytes = 16_000
