package console

import (
	"context"
	"net/http"
	"strings"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/operators"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// auditPage lists the audit, or what the operators with one of the viewer's roles did; with ?check=1 it also
// verifies the chain.
func (s *handlers) auditPage(c *fiber.Ctx) error {
	roles := web.Operator(c).Roles
	data := operators.AuditData{OfRole: !s.Policy.Allows(roles, access.ViewAudit)}
	data.Checked = c.Query("check") == "1" && !data.OfRole
	return send(s, c, http.StatusOK, listPage[audit.Row]{
		spec: console.ActList, always: true, columns: operators.ActColumns,
		within: func(q list.Query) list.Query {
			if data.OfRole {
				q = q.With(console.RoleWord, string(roles))
			}
			return q
		},
		read: func(ctx context.Context, q list.Query, span list.Slice) (list.Page[audit.Row], error) {
			if err := s.groupActs(ctx, q, span, &data); err != nil {
				return list.Page[audit.Row]{}, err
			}
			return s.Console.Acts(ctx, q, span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []audit.Row) (templ.Component, error) {
			l.Anything = true // signing in has left an entry in the audit
			if data.OfRole {
				delete(l.Suggested, "actor") // others act too
			}
			if !data.Checked {
				return operators.Audit(p, l, data), nil
			}
			first := func(b audit.Break) {
				switch {
				case b.KeyNeeded && data.KeyNeeded == 0:
					data.KeyNeeded = b.First
				case !b.KeyNeeded && data.Broken == 0:
					data.Broken = max(b.First, 1)
				}
			}
			var err error // the whole chain, within the time of the request rather than of a list
			data.Length, err = s.Audit.Verify(c.UserContext(), s.DB.Read, first, nil)
			return operators.Audit(p, l, data), err
		},
	})
}

// maxGroups bounds the groups of the audit by one field.
const maxGroups = 8

// groupActs counts the acts of the first page's filter, by what was done and by who did it, unless
// the filter has chosen one.
func (s *handlers) groupActs(ctx context.Context, q list.Query, span list.Slice, data *operators.AuditData) (err error) {
	if span.At != (list.Cursor{}) {
		return nil
	}
	if q.Get("action") == "" {
		if data.Acts, data.MoreActs, err = q.Groups(ctx, s.DB, span, "action", maxGroups); err != nil {
			return err
		}
	}
	if q.Get("actor") == "" {
		data.Actors, data.MoreActors, err = q.Groups(ctx, s.DB, span, "actor", maxGroups)
		for i, g := range data.Actors {
			data.Actors[i].Value = strings.TrimPrefix(g.Value, "operator:")
		}
	}
	return err
}
