package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// compensationView is a compensation in the admin API. Missing values are null.
type compensationView struct {
	ID          string  `json:"id"`
	Kind        string  `json:"kind"`
	Cause       string  `json:"cause"`
	Subject     string  `json:"subject"`
	OrderNo     *string `json:"order_no"`
	Merchant    *string `json:"merchant"`
	Supplier    *string `json:"supplier"`
	State       string  `json:"state"`
	Attempts    int64   `json:"attempts"`
	MaxAttempts int64   `json:"max_attempts"`
	NextAt      *string `json:"next_at"`
	LastClass   *string `json:"last_class"`
	LastError   *string `json:"last_error"`
	Amount      *int64  `json:"amount"`
	Currency    *string `json:"currency"`
	MadeBy      string  `json:"made_by"`
	CreatedAt   string  `json:"created_at"`
	FinishedAt  *string `json:"finished_at"`
}

func viewCompensation(x console.Compensation) compensationView {
	v := compensationView{
		ID: strconv.FormatInt(x.ID, 10), Kind: x.Kind, Cause: string(x.Cause), Subject: x.Subject(), OrderNo: orNull(x.OrderNo),
		Merchant: orNull(x.Merchant), Supplier: orNull(x.Supplier), State: string(x.State), Attempts: x.Attempts,
		MaxAttempts: x.MaxAttempts,
		NextAt:      notify.StampOr(x.NextAt), LastClass: orNull(string(x.LastClass)), LastError: orNull(x.LastError),
		Currency: orNull(x.Currency),
		MadeBy:   x.MadeBy, CreatedAt: notify.Stamp(x.OpenedAt), FinishedAt: notify.StampOr(x.FinishedAt),
	}
	if x.Currency != "" {
		v.Amount = &x.Amount
	}
	return v
}

// orNull returns a string, or null if it is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

type compensationsQuery struct {
	State   string `query:"state" doc:"The compensation's state."`
	Kind    string `query:"kind" doc:"What it repeats."`
	Cause   string `query:"cause" doc:"Why it was made."`
	OrderNo string `query:"order_no" filter:"no" doc:"The order's number."`
	codes
	paging
}

func (s *handlers) listCompensations(c *fiber.Ctx) error {
	return listed(s, c, console.CompensationList, s.Console.Compensations, viewCompensation)
}

// knownCodes refuses unknown codes: they must not look like an empty list.
func (s *handlers) knownCodes(c *fiber.Ctx, supplier, merchant string) error {
	if supplier != "" {
		if id, err := s.Console.SupplierID(c.UserContext(), supplier); err != nil || id == 0 {
			return orInvalid(err, "supplier")
		}
	}
	if merchant != "" {
		if id, err := s.Console.MerchantID(c.UserContext(), merchant); err != nil || id == 0 || !s.Sees(s.Actor(c), merchant) {
			return orInvalid(err, "merchant")
		}
	}
	return nil
}

func orInvalid(err error, field string) error {
	if err != nil {
		return err
	}
	return web.InvalidField(field, "there is no such code")
}

// tryView is one try of a compensation.
type tryView struct {
	At     string   `json:"at"`
	TookMS *float64 `json:"took_ms"`
	Class  string   `json:"class"`
	Error  *string  `json:"error"`
	Call   *string  `json:"call"` // the id of the call to the supplier
}

// oneCompensationView adds what is returned only for a single compensation.
type oneCompensationView struct {
	compensationView
	Payload json.RawMessage `json:"payload"`
	Tries   []tryView       `json:"tries"`
}

func (s *handlers) getCompensation(c *fiber.Ctx) error {
	id, err := rowID(c)
	if err != nil {
		return err
	}
	x, err := s.Console.CompensationDetail(c.UserContext(), id)
	if err != nil {
		return err
	}
	v := oneCompensationView{compensationView: viewCompensation(x.Compensation), Payload: x.Payload, Tries: make([]tryView, len(x.Tries))}
	if !json.Valid(v.Payload) { // the reason why it is dead
		v.Payload, _ = json.Marshal(string(x.Payload))
	}
	for i, t := range x.Tries {
		v.Tries[i] = tryView{
			At: notify.Stamp(t.At), TookMS: milliseconds(time.Duration(t.TookUS) * time.Microsecond),
			Class: string(t.Class), Error: orNull(t.Error),
		}
		if t.CallID != 0 {
			v.Tries[i].Call = orNull(strconv.FormatInt(t.CallID, 10))
		}
	}
	return c.JSON(v)
}

// groupView is a group of compensations.
type groupView struct {
	Kind     string    `json:"kind"`
	Cause    string    `json:"cause"`
	Supplier *string   `json:"supplier"`
	Count    int64     `json:"count"`
	OldestAt string    `json:"oldest_at"`
	Sums     []sumView `json:"sums"`
}

type sumView struct {
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"`
}

func viewSums(t money.Totals) []sumView {
	all := make([]sumView, len(t))
	for i, x := range t {
		all[i] = sumView{x.Currency, x.Minor}
	}
	return all
}

type groupsQuery struct {
	State string `query:"state" doc:"The compensations' state, dead by default."`
}

func (groupsQuery) choices() map[string][]string {
	return map[string][]string{"state": compensation.Moves.Words()}
}

func (s *handlers) groupCompensations(c *fiber.Ctx) error {
	state := compensation.State(cmp.Or(requestOf[groupsQuery](c).State, string(compensation.Dead)))
	groups, _, err := s.Console.CompensationGroups(c.UserContext(), state)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(groups, 0, func(g console.CompensationGroup) groupView {
		return groupView{
			Kind: g.Kind, Cause: string(g.Cause), Supplier: orNull(g.Supplier), Count: g.Count, OldestAt: notify.Stamp(g.OldestAt),
			Sums: viewSums(g.Sums),
		}
	}))
}

// showCompensation responds with the compensation that an act was about.
func (s *handlers) showCompensation(status int) func(*fiber.Ctx, web.Acted) error {
	return func(c *fiber.Ctx, done web.Acted) error {
		x, err := s.Console.CompensationDetail(c.UserContext(), done.Ref.Row)
		if err != nil {
			return err
		}
		return c.Status(status).JSON(viewCompensation(x.Compensation))
	}
}

// redrivenView is the result of a re-drive.
type redrivenView struct {
	Matched int64 `json:"matched"`
	Queued  int64 `json:"queued"`
	Skipped int64 `json:"skipped"`
}

func (s *handlers) showRedriven(c *fiber.Ctx, done web.Acted) error {
	d := compensation.RedrivenOf(done.Outcome)
	return c.Status(http.StatusAccepted).JSON(redrivenView{d.Matched, d.Queued, d.Skipped})
}
