package console

import (
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/views/panel"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// unmaskedFor is how long what is masked elsewhere stays on the screen.
const unmaskedFor = time.Minute

// unmasked shows an object without masks in this one response, to an operator who may see it and
// gives a reason. The audit row has been committed. The browser leaves the page automatically; sent
// a second time, the form shows nothing.
func (s *handlers) unmasked(c *fiber.Ctx, done web.Acted, page string, show func(panel.Unmask) error) error {
	if done.Repeated {
		return showDone(c, page)
	}
	// The header needs no script, and a page that is left open shows nothing.
	c.Set("Refresh", strconv.Itoa(int(unmaskedFor/time.Second))+"; url="+page)
	return show(panel.Unmask{Until: s.DB.Now() + unmaskedFor.Microseconds()})
}

// masked is how the reader of a masked page may see the rest, and whether a form just showed it.
func (s *handlers) masked(c *fiber.Ctx, kind, id, page string) (panel.Unmask, error) {
	did, err := s.done(c, s.Acts.Kind(kind).Object, id)
	u := panel.Unmask{Done: did != nil && did.Action == kind}
	if err == nil && s.Policy.Allows(web.Operator(c).Roles, access.ViewPersonal) {
		path, query, _ := strings.Cut(page, "?")
		u.Path, u.Key = strings.TrimSuffix(path+"/unmask?"+query, "?"), act.NewKey()
	}
	return u, err
}
