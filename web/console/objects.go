package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/web"
	"backstop/web/console/live"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// object is a kind of object whose page follows it: the stream sends the object's version, and for a
// new one the script reads the page again, by the page's own handler and the viewer's own rights.
type object struct {
	path    string // of its page, as in the table of routes
	version console.Versioned
	id      func(no string) (int64, error) // nil = its number identifies it
	every   time.Duration                  // maximum age of the version
	also    []string                       // topics of its page besides the version

	permission access.Permission // that of its page
	// owner finds the id of the merchant of the object with a number; "" = the page does not exist for people who
	// are limited to merchants.
	owner string
}

// newObjects returns the kinds of objects whose pages follow them.
func newObjects() []*object {
	exceptionOf := func(no string) (int64, error) { return strconv.ParseInt(no, 10, 64) }
	batchOf := func(no string) (int64, error) {
		id, ok := batch.ParseNo(no)
		if !ok {
			return 0, act.ErrNotFound
		}
		return id, nil
	}
	return []*object{
		{path: "/orders/:order_no", version: console.OrderVersion, every: live.Every, owner: ownerOfOrder},
		{
			path: "/exceptions/:exception", version: console.ExceptionVersion, every: live.Every, id: exceptionOf, owner: ownerOfException,
		},
		{path: "/refunds/:refund_no", version: console.RefundVersion, every: live.Every, owner: ownerOfRefund},
		{path: "/payouts/:payout_no", version: console.PayoutVersion, every: live.Every, owner: ownerOfPayout},
		{path: "/disputes/:dispute_no", version: console.DisputeVersion, every: live.Every, owner: ownerOfDispute},
		{path: "/approvals/:approval", version: console.ApprovalVersion, every: live.Every, id: approval.ParseNo, owner: ownerOfApproval},
		{path: "/batches/:batch", version: console.BatchVersion, every: live.Every, id: batchOf, also: []string{batchTopic}},
		{ // its figures change all the time
			path: "/merchants/:merchant", version: console.MerchantVersion, every: 5 * live.Every, owner: merchantByCode,
		},
	}
}

// name is that of the object's topic: the first part of the path.
func (o *object) name() string { return strings.Split(o.path, "/")[1] }

// versionTopic sends the version of an object to those who name it.
func (s *handlers) versionTopic(o *object) topic {
	return topic{
		Name: o.name(), Every: o.every, Ranged: true, Asked: true,
		Read: func(ctx context.Context, no string) (_ drawing, err error) {
			var id int64
			if o.id != nil {
				if id, err = o.id(no); err != nil {
					return nil, act.ErrNotFound
				}
			}
			version, err := s.Console.Version(ctx, o.version, id, no)
			return func(*ui.Page) templ.Component { return panel.Version(version) }, err
		},
	}
}

// localVersion is where a request keeps the version of the object that its page shows.
const localVersion = "version"

// follow makes the pages of objects follow them.
func (s *handlers) follow(list []web.Route) []web.Route {
	for _, o := range s.objects {
		i := slices.IndexFunc(list, func(r web.Route) bool { return r.Method == http.MethodGet && r.Path == o.path })
		page, t := list[i].Handler, s.versionTopic(o)
		o.permission = list[i].Permission
		list[i].Handler = func(c *fiber.Ctx) error {
			_, no, _ := cutObject(c.Path())
			// It is read before the page, which then shows at least this version. A form that was
			// refused stays as it is.
			if draw, _, err := s.live.Get(t, no); err == nil && c.Method() == http.MethodGet {
				c.Locals(localVersion, draw)
			}
			return page(c)
		}
	}
	return list
}

// Page returns what every page depends on. That of an object follows it, and has what may be decided
// about it.
func (s *handlers) Page(c *fiber.Ctx) *ui.Page {
	p := s.Server.Page(c)
	if forms, ok := c.Locals(localForms).(*panel.DecisionForms); ok {
		p.Decisions = panel.Decisions(p, *forms)
		for _, o := range forms.Offers {
			p.Decides = append(p.Decides, o.Action)
		}
	}
	if draw, ok := c.Locals(localVersion).(drawing); ok {
		p.Live = true
		p.Follows = templ.Join(panel.Live(p, "/_/live?page="+url.QueryEscape(c.Path())+"&lang="+p.Language, "", p.Now), draw(p))
	}
	return p
}

// objectAt returns the object whose page has this path, and its number.
func (s *handlers) objectAt(path string) (*object, string) {
	name, no, ok := cutObject(path)
	i := slices.IndexFunc(s.objects, func(o *object) bool { return ok && o.name() == name })
	if i < 0 {
		return nil, ""
	}
	return s.objects[i], no
}

// cutObject returns the parts of an object's path.
func cutObject(path string) (name, no string, ok bool) {
	name, no, ok = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	no, err := url.PathUnescape(no)
	return name, no, ok && err == nil && web.IsStorable(no)
}
