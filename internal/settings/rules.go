package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/uptrace/bun"
)

// Rules are the declared rules of decisions (`approval:` of the file).
type Rules struct {
	// SecondPerson means that decisions need two people. If false, a proposal up to
	// Above.Amount runs at once and is marked as made by one person alone.
	SecondPerson bool
	// Apply means that changes by `apply` of keys, addresses, fees and these rules also wait
	// for a second person.
	Apply bool
	// Typed is the amount above which a proposal must repeat the amount, by currency (minor
	// units). A currency without an entry: always.
	Typed map[string]int64
	// Above says when two people are needed, by currency. See Limits.
	Above map[string]Above
}

// Above holds limits for one currency, in minor units and rows.
type Above struct {
	Amount      int64 // of a decision by one person alone; 0 = always two people
	BatchAmount int64 // of a batch
	BatchRows   int64 // of a batch, over all currencies
}

// defaultAbove applies to currencies without their own limits.
var defaultAbove = Above{BatchAmount: 1_000_000, BatchRows: 200}

// Limits returns the limits of a currency: its own, or the defaults.
func (r Rules) Limits(currency string) Above {
	if own, ok := r.Above[currency]; ok {
		return own
	}
	return defaultAbove
}

// NeedsTyping reports whether a proposal about this amount must repeat it.
func (r Rules) NeedsTyping(amount int64, currency string) bool {
	above, ok := r.Typed[currency]
	return !ok || amount > above
}

// DefaultRules returns the rules that apply if none are declared.
func DefaultRules() Rules { return defaultApproval().Rules() }

// Approval is the rules as in the apply file and as stored.
type Approval struct {
	SecondPerson bool          `json:"second_person" apply:"second_person" waits:"true" default:"true" example:"true" doc:"Whether decisions need two people. false = a one-person installation: a decision up to second_above takes effect at once and is marked as decided by one person." doc_zh:"决定是否需要两人。false 为单人使用：不超过 second_above 的决定立即生效，并注明由一人决定。" label:"Second person" label_zh:"双人复核"`
	Apply        bool          `json:"apply" apply:"apply" waits:"true" default:"false" example:"true" doc:"Whether changes that apply makes wait for a second person, once there are orders." doc_zh:"有订单之后，配置变更是否等待第二人复核。" label:"Changes wait" label_zh:"配置变更需复核"`
	TypedAbove   []TypedAbove  `json:"typed_above" apply:"typed_above" waits:"true" many:"currencies" max:"200" empty:"every amount must be typed" example:"[{ currency: CNY, amount: 100000 }]" doc:"The amounts above which a proposal must repeat the amount." doc_zh:"超过此金额的提议须再次输入金额。" label:"Amount typed above" label_zh:"须输入金额的界限"`
	SecondAbove  []SecondAbove `json:"second_above" apply:"second_above" waits:"true" many:"currencies" max:"200" empty:"the defaults below" example:"[{ currency: CNY, amount: 0, batch_amount: 1000000, batch_rows: 200 }]" doc:"When two people are needed." doc_zh:"何时需要两人。" label:"Two people above" label_zh:"须双人的界限"`
}

// TypedAbove is Rules.Typed for one currency.
type TypedAbove struct {
	Currency string `json:"currency" apply:"currency" need:"missing" example:"CNY" doc:"ISO 4217. In a currency without an entry, every amount must be typed."`
	Amount   int64  `json:"amount" apply:"amount" min:"0" max:"1000000000000000" need:"missing: in minor units" example:"100000" doc:"In minor units; an amount above it must be typed."`
}

// SecondAbove is Rules.Above for one currency.
type SecondAbove struct {
	Currency    string `json:"currency" apply:"currency" need:"missing" example:"CNY" doc:"ISO 4217."`
	Amount      int64  `json:"amount" apply:"amount" min:"0" max:"1000000000000000" default:"0" example:"0" doc:"In a one-person installation: the amount of a decision, in minor units, above which two people are needed; 0 = always."`
	BatchAmount int64  `json:"batch_amount" apply:"batch_amount" min:"0" max:"1000000000000000" default:"1000000" example:"1000000" doc:"The total of a batch, in minor units, above which two people are needed."`
	BatchRows   int64  `json:"batch_rows" apply:"batch_rows" min:"0" max:"1000000" default:"200" example:"200" doc:"The number of rows of a batch above which two people are needed."`
}

// NewSecondAbove returns an entry with the defaults.
func NewSecondAbove() SecondAbove {
	return SecondAbove{Amount: defaultAbove.Amount, BatchAmount: defaultAbove.BatchAmount, BatchRows: defaultAbove.BatchRows}
}

func defaultApproval() *Approval { return &Approval{SecondPerson: true} }

// Rules returns the rules in the form in which they are applied.
func (a *Approval) Rules() Rules {
	r := Rules{SecondPerson: a.SecondPerson, Apply: a.Apply, Typed: map[string]int64{}, Above: map[string]Above{}}
	for _, t := range a.TypedAbove {
		r.Typed[t.Currency] = t.Amount
	}
	for _, s := range a.SecondAbove {
		r.Above[s.Currency] = Above{Amount: s.Amount, BatchAmount: s.BatchAmount, BatchRows: s.BatchRows}
	}
	return r
}

// ApprovalObject is the object of the rules.
var ApprovalObject = Object{Kind: "approval"}

// rulesRow is the rules as stored.
type rulesRow struct {
	bun.BaseModel `bun:"table:approval_rules"`

	Place     int64  `bun:"place,pk"` // 1
	Rules     string `bun:"rules"`    // Approval as JSON
	UpdatedAt int64  `bun:"updated_at"`
}

// readApproval reads the rules; nil = none are stored. If the rules cannot be read, the
// strictest apply, and unread says why.
func readApproval(ctx context.Context, q bun.IDB) (is *Approval, unread, err error) {
	var texts []string
	if err := q.NewRaw("SELECT rules FROM approval_rules").Scan(ctx, &texts); err != nil {
		return nil, nil, fmt.Errorf("read the rules of decisions: %w", err)
	}
	if len(texts) == 0 {
		return nil, nil, nil
	}
	is = new(Approval)
	if err := json.Unmarshal([]byte(texts[0]), is); err != nil {
		return &Approval{SecondPerson: true, Apply: true}, err, nil
	}
	return is, nil, nil
}

// rules loads the rules.
func (s *Store) rules(ctx context.Context, q bun.IDB) (Rules, error) {
	is, unread, err := readApproval(ctx, q)
	switch {
	case err != nil:
		return Rules{}, err
	case unread != nil:
		s.log.Error("the approval rules cannot be read: every decision needs two people until `apply` repairs them", "error", unread)
	case is == nil:
		return DefaultRules(), nil
	}
	return is.Rules(), nil
}

func (k *checker) approval(v *Approval) {
	var typed, above []string
	for i, t := range v.TypedAbove {
		k.currency(fmt.Sprintf("typed_above[%d].currency", i), t.Currency)
		typed = append(typed, t.Currency)
	}
	for i, s := range v.SecondAbove {
		k.currency(fmt.Sprintf("second_above[%d].currency", i), s.Currency)
		above = append(above, s.Currency)
	}
	k.once("typed_above[%d].currency", typed)
	k.once("second_above[%d].currency", above)
}

// approval writes the rules.
func (w *commit) approval(ctx context.Context, v *Approval) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.tx.NewInsert().Model(&rulesRow{Place: 1, Rules: string(text), UpdatedAt: w.now}).
		On("CONFLICT (place) DO UPDATE").Set("rules = EXCLUDED.rules").Set("updated_at = EXCLUDED.updated_at").Exec(ctx)
	return err
}

// rulesChange returns the approval rules before and after; "" = no change.
func rulesChange(changes []Change) (old, is string) {
	for _, c := range changes {
		after, ok := c.After.(*Approval)
		if !ok {
			continue
		}
		var was, now []string
		for _, f := range Fields(reflect.TypeFor[Approval]()) {
			before, after := Text(f.Of(reflect.ValueOf(c.Before).Elem()).Interface()), Text(f.Of(reflect.ValueOf(after).Elem()).Interface())
			if before != after {
				was, now = append(was, f.Word+": "+before), append(now, f.Word+": "+after)
			}
		}
		return strings.Join(was, "; "), strings.Join(now, "; ")
	}
	return "", ""
}
