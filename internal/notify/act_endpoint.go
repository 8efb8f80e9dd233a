package notify

import (
	"context"
	"errors"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// ErrUnreadable means that nothing can be sent to a recipient because of a fault of ours.
var ErrUnreadable = errors.New("the settings of this merchant cannot be read, which is a fault on our side: try again later")

// endpointOf is an endpoint as the subject of an act.
type endpointOf struct {
	m *merchant.Merchant
	e *merchant.Endpoint
}

// EnableAct is the audit name of enabling an endpoint.
const EnableAct = "merchant.enable_address"

// PingAct returns the audit name of pinging an endpoint; owner is "merchant" or "subscription".
func PingAct(owner string) string { return owner + ".ping" }

// pinging pings the endpoint Ref.Part of Ref.ID, or the first one. Outcome.After sends the
// ping and returns the Answer. Errors: ErrUnreadable, ErrShadow.
func (a Acts) pinging(owner string, find func(code string) *merchant.Merchant) act.Kind {
	return act.Kind{
		Name: PingAct(owner), Object: owner, Permission: access.PingEndpoints, Scope: access.Control,
		Load: func(_ context.Context, _ bun.IDB, refs []act.Ref) ([]act.Subject, error) {
			if a.Directory().Shadow {
				return nil, ErrShadow
			}
			for i, r := range refs {
				m := find(r.ID)
				if m != nil && m.Broken {
					return nil, ErrUnreadable
				}
				if m != nil && r.Part == "" && len(m.Endpoints) > 0 {
					refs[i].Part = m.Endpoints[0].Name
				}
			}
			return loadEndpoints(refs, find)
		},
		Do: func(_ context.Context, _ db.Tx, _ act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs := make([]act.Outcome, len(subjects))
			for i, s := range subjects {
				to, id := s.Value.(endpointOf), a.DB.NewID()
				outs[i].Details = map[string]any{"endpoint": Shown(to.e.Name), "notification": PublicID(id, Ping)}
				outs[i].After = func(ctx context.Context) (any, error) { return a.Pings.Ping(ctx, to.m, to.e, id) }
			}
			return outs, nil
		},
	}
}

// enabling enables the disabled endpoint Ref.Part of the merchant Ref.ID.
func (a Acts) enabling() act.Kind {
	return act.Kind{
		Name: EnableAct, Object: "merchant", Permission: access.ControlAddresses,
		Load: func(_ context.Context, _ bun.IDB, refs []act.Ref) ([]act.Subject, error) {
			return loadEndpoints(refs, a.merchant)
		},
		Do: func(ctx context.Context, tx db.Tx, _ act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs := make([]act.Outcome, len(subjects))
			for i, s := range subjects {
				to := s.Value.(endpointOf)
				outs[i].Details = map[string]any{"endpoint": Shown(to.e.Name)}
				if err := EnableEndpoint(ctx, tx, to.m.ID, to.e.Name); err != nil {
					return nil, err
				}
			}
			return outs, nil
		},
	}
}

// loadEndpoints finds endpoints by owner's code and by name, or by the key that the console
// shows instead of a URL.
func loadEndpoints(refs []act.Ref, find func(code string) *merchant.Merchant) (subjects []act.Subject, err error) {
	for _, r := range refs {
		m := find(r.ID)
		if m == nil {
			continue
		}
		e := m.Endpoint(r.Part)
		for i := range m.Endpoints {
			if e == nil && m.Endpoints[i].Key() == r.Part {
				e = &m.Endpoints[i]
			}
		}
		if e == nil {
			return nil, invalid.Field("endpoint", text.Text{ZH: "商户没有这个端点", EN: ErrNoEndpoint.Error()})
		}
		subjects = append(subjects, act.Subject{Row: m.ID, ID: m.Code, MerchantID: m.ID, Value: endpointOf{m, e}})
	}
	return subjects, nil
}
