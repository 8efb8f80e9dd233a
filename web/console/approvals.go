package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/internal/settings/apply"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// waitingShown is how many of the waiting proposals stand above the list of the others: those for
// the viewer first.
const waitingShown = 50

// approvalsPage lists proposals, with the waiting ones on top.
func (s *handlers) approvalsPage(c *fiber.Ctx) error {
	return send(s, c, http.StatusOK, listPage[console.Approval]{
		spec: console.ApprovalList, always: true, read: s.Console.Approvals, columns: work.ApprovalColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, rows []console.Approval) (templ.Component, error) {
			data := work.ApprovalsData{Mine: s.decides(p)}
			if l.First && len(l.Filter().Values) == 0 && !p.Limited { // what waits is of all merchants
				waiting, err := s.Console.Waiting(ctx)
				if err != nil {
					return nil, err
				}
				data.Yours = waiting.For(data.Mine)
				data.ForYou, data.ForOthers = waiting.Split(data.Mine, waitingShown)
			}
			return work.Approvals(p, l, rows, data), nil
		},
	})
}

// decides reports whether the viewer of a page may decide a proposal now.
func (s *handlers) decides(p *ui.Page) func(*console.Approval) bool {
	by := act.Actor{ID: p.UserID, Roles: p.Roles}
	return func(a *console.Approval) bool { return s.Approvals.May(by, &a.Approval, a.MakerNow).Approve }
}

// approvalPage shows one proposal, with the buttons that the viewer may use now.
func (s *handlers) approvalPage(c *fiber.Ctx) error {
	return s.sendApproval(c, http.StatusOK, text.Text{})
}

// sendApproval responds with the page of a proposal, and with why a verdict was refused; zero =
// none was.
func (s *handlers) sendApproval(c *fiber.Ctx, status int, refused text.Text) error {
	id, err := approval.ParseNo(c.Params("approval"))
	if err != nil {
		return err
	}
	a, err := s.Console.Approval(c.UserContext(), id)
	if err != nil {
		return err
	}
	did, err := s.done(c, "approval", a.No())
	if err != nil {
		return err
	}
	data := work.ApprovalData{
		Approval: a, Key: act.NewKey(), Saved: did != nil, May: s.Approvals.May(s.Actor(c), &a.Approval, a.MakerNow), Refused: refused,
	}
	if a.Object == apply.ChangeObject {
		data.History = s.historyOf(web.Operator(c).Roles, a.ObjectID)
	}
	if data.Answer, err = s.Console.LastAnswer(c.UserContext(), a.OrderNo); err != nil {
		return err
	}
	if no, ok := batch.ParseNo(a.ObjectID); ok && a.Object == batch.Object {
		b, err := batch.Find(c.UserContext(), s.DB.Read, no)
		if err != nil {
			return err
		}
		plan, err := s.planOf(c.UserContext(), b)
		if err != nil {
			return err
		}
		data.Plan = &plan
	}
	return s.Render(c, status, work.ApprovalPage(s.Page(c), data))
}

// onApproval applies a verdict to the proposal in the path, and redirects to it. Where it comes
// too late, or the supplier's answer is against it, the page says what is the case.
func (s *handlers) onApproval(say func(*approval.Desk, context.Context, approval.Verdict) (*approval.Approval, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := approval.ParseNo(c.Params("approval"))
		if err != nil {
			return err
		}
		key, err := formKey(c)
		if err != nil {
			return err
		}
		a, err := say(s.Approvals, c.UserContext(), approval.Verdict{
			ID: id, Hash: web.Field(c, "hash"), Reason: web.Field(c, "reason"),
			Unverified: web.Field(c, "unverified") != "", By: s.Actor(c), Key: key,
		})
		_, live := errors.AsType[*approval.LiveError](err)
		switch {
		case live:
			return s.sendApproval(c, http.StatusConflict, work.RefusedByAnswer)
		case errors.Is(err, approval.ErrEnded), errors.Is(err, approval.ErrExpired):
			return s.sendApproval(c, http.StatusConflict, work.RefusedAsLate)
		case err != nil:
			return err
		}
		return showDone(c, "/approvals/"+a.No())
	}
}

// propose returns the handler of a form that proposes a decision about the object in the path, and
// leads to the proposal.
func (s *handlers) propose(object string, id func(*fiber.Ctx) (string, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		no, err := id(c)
		if err != nil {
			return err
		}
		version, err := strconv.ParseInt(web.Field(c, "version"), 10, 64)
		if err != nil {
			return web.Invalid("version", web.OpenAgain)
		}
		p := approval.Proposal{
			Action: web.Field(c, "action"), Object: object, ObjectID: no, Reason: web.Field(c, "reason"),
			Amount: strings.TrimSpace(web.Field(c, "amount")), Version: version, By: s.Actor(c),
		}
		if p.Params, err = s.decisionParams(c, &p); err != nil {
			return err
		}
		return s.sendProposal(c, p)
	}
}

var tNotAmount = text.Text{ZH: "“%s”不是 12.50 这样的金额", EN: "“%s” is not an amount such as 12.50"}

// decisionParams returns the parameters of a form. An amount among them is the typed one,
// converted to minor units, so that it need not be entered twice. One that the proposer chooses
// may be typed in any way.
func (s *handlers) decisionParams(c *fiber.Ctx, p *approval.Proposal) (json.RawMessage, error) {
	o, err := s.Approvals.Form(p.Object, p.Action)
	if err != nil {
		return nil, err
	}
	return formParams(c, "params.", o.Fields, func() (int64, error) {
		about, _, err := s.Approvals.OffersOf(c.UserContext(), p.By, p.Object, p.ObjectID)
		if err != nil {
			return 0, err
		}
		minor, err := money.ParseMajor(p.Amount, about.Currency)
		if err != nil {
			return 0, web.Invalid("amount", tNotAmount, p.Amount)
		}
		if o.Free {
			p.Amount = money.Format(minor, about.Currency)
		}
		return minor, nil
	})
}

// approveManyPage shows what would be approved together, of the rows that are picked or that a rule
// selects; after that, what came of the form in the address.
func (s *handlers) approveManyPage(c *fiber.Ctx) error {
	if c.Query("form") != "" {
		return s.approvedMany(c)
	}
	rule, err := s.approvalRule(c)
	if err != nil {
		return err
	}
	selected, err := s.Console.Selected(c.UserContext(), rule)
	if err != nil {
		return err
	}
	by := s.Actor(c)
	return s.Render(c, http.StatusOK, work.ApproveMany(s.Page(c), work.NewManyData(selected, act.NewKey(),
		func(a *console.Approval) approval.Obstacle { return s.Approvals.Obstacle(by, &a.Approval, a.MakerNow) })))
}

var (
	tNoMerchant    = text.Text{ZH: "没有商户“%s”", EN: "there is no merchant “%s”"}
	tWhichCurrency = text.Text{ZH: "金额上限须选择币种", EN: "choose the currency of the amount"}
)

// approvalRule reads which proposals to approve together.
func (s *handlers) approvalRule(c *fiber.Ctx) (r console.ApprovalRule, err error) {
	f := web.ReadFilter(c)
	switch f.Text("pick") {
	case "all":
		return r, f.Err
	case "rule":
	default:
		for _, no := range c.Context().QueryArgs().PeekMulti("row") {
			id, err := approval.ParseNo(string(no))
			if err != nil || len(r.IDs) == approval.MaxMany {
				return r, web.Invalid("row", approval.PickSome, approval.MaxMany)
			}
			r.IDs = append(r.IDs, id)
		}
		if len(r.IDs) == 0 {
			return r, web.Invalid("row", approval.PickSome, approval.MaxMany)
		}
		return r, nil
	}
	r.Action, r.Currency = f.Text("action"), f.Text("currency")
	if code := strings.TrimSpace(f.Text("merchant")); code != "" {
		m := s.Settings.Merchants().ByCode(code)
		if m == nil {
			return r, web.Invalid("merchant", tNoMerchant, code)
		}
		r.Merchant = m.ID
	}
	if most := strings.TrimSpace(f.Text("up_to")); most != "" {
		if r.Currency == "" {
			return r, web.Invalid("currency", tWhichCurrency)
		}
		if r.UpTo, err = money.ParseMajor(most, r.Currency); err != nil || r.UpTo <= 0 {
			return r, web.Invalid("up_to", tNotAmount, most)
		}
	}
	return r, f.Err
}

// approvedMany shows what came of the form in the address.
func (s *handlers) approvedMany(c *fiber.Ctx) error {
	did, err := s.done(c, "approval", "")
	if err != nil {
		return err
	}
	if did == nil || did.Action != approval.ManyAct || did.Actor != s.Actor(c).Name {
		return act.ErrNotFound
	}
	var params struct{ Results map[string]approval.Obstacle }
	if err := json.Unmarshal([]byte(did.Params), &params); err != nil {
		return err
	}
	rule, data := console.ApprovalRule{IDs: []int64{}}, work.ManyData{Obstacles: map[int64]approval.Obstacle{}}
	for no, obstacle := range params.Results {
		id, err := approval.ParseNo(no)
		if err != nil {
			return err
		}
		rule.IDs, data.Obstacles[id] = append(rule.IDs, id), obstacle
	}
	selected, err := s.Console.Selected(c.UserContext(), rule)
	if err != nil {
		return err
	}
	data.Rows = selected.Rows
	return s.Render(c, http.StatusOK, work.ApproveMany(s.Page(c), data))
}

// approveMany approves the proposals of the form one by one, and leads to what came of them.
func (s *handlers) approveMany(c *fiber.Ctx) error {
	key, err := formKey(c)
	if err != nil {
		return err
	}
	m := approval.Many{Hashes: map[int64]string{}, Typed: typedSums(c), Reason: web.Field(c, "reason"), By: s.Actor(c), Key: key}
	for _, row := range c.Request().PostArgs().PeekMulti("row") {
		no, hash, _ := strings.Cut(string(row), " ")
		id, err := approval.ParseNo(no)
		if err != nil {
			return web.Invalid("row", approval.PickSome, approval.MaxMany)
		}
		m.Hashes[id] = hash
	}
	if err := s.Approvals.ApproveMany(c.UserContext(), m); err != nil {
		return err
	}
	return showDone(c, "/approvals/many")
}
