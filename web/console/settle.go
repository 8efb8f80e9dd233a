package console

import (
	"context"
	"strings"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// settling is what a role needs to end an exception of the kind, and to open it
// again.
func settling(kind string) access.Permission {
	if compensation.CarriesMoney(kind) {
		return access.SettleMoney
	}
	return access.SettleExceptions
}

// toSettle reads the exception that the path names, for who may end it.
func (s *handlers) toSettle(c *fiber.Ctx) (*compensation.Item, error) {
	id, err := idOf(c, "exception")
	if err != nil {
		return nil, err
	}
	ctx, cancel := web.Work()
	defer cancel()
	x, err := compensation.Find(ctx, s.DB.Read, id)
	if err != nil {
		return nil, err
	}
	if needs := settling(x.Kind); !s.Policy.Allows(web.Operator(c).Role, needs) {
		return nil, s.Forbidden(needs)
	}
	return x, nil
}

// settleException ends an exception; one about money by its amount, an outcome and
// a reference.
func (s *handlers) settleException(c *fiber.Ctx) error {
	x, err := s.toSettle(c)
	if err != nil {
		return err
	}
	end := compensation.Settlement{
		Amount: strings.TrimSpace(web.Field(c, "amount")), Outcome: compensation.Outcome(web.Field(c, "outcome")),
		Reference: strings.TrimSpace(web.Field(c, "reference")), Ignore: web.Field(c, "ignore") != "",
	}
	params, action := map[string]any{"kind": x.Kind}, "exception.settle"
	if end.Ignore {
		action = "exception.ignore"
	}
	if compensation.CarriesMoney(x.Kind) {
		params["outcome"], params["reference"] = end.Outcome, end.Reference
		if end.Amount != "" {
			params["amount"] = end.Amount + " " + x.Currency
		}
	}
	return s.onException(c, action, params, true, func(ctx context.Context, tx db.Tx, _ int64) error {
		return compensation.Settle(ctx, tx, s.DB, x, end)
	})
}

// reopenException opens an exception again that was ended.
func (s *handlers) reopenException(c *fiber.Ctx) error {
	x, err := s.toSettle(c)
	if err != nil {
		return err
	}
	params := map[string]any{"kind": x.Kind}
	if x.Outcome != "" {
		params["outcome"], params["reference"] = x.Outcome, x.Reference // the row does not keep them
	}
	return s.onException(c, "exception.reopen", params, true, func(ctx context.Context, tx db.Tx, id int64) error {
		return compensation.Reopen(ctx, tx, s.DB, id)
	})
}
