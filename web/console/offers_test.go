package console

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web"

	dom "golang.org/x/net/html"
)

var (
	postForm   = regexp.MustCompile(`<form[^>]*method="post"[^>]*>`)
	formAction = regexp.MustCompile(`\saction="([^"]*)"`)
	otherPosts = regexp.MustCompile(`\s(?:formaction|hx-post)="([^"]*)"`)
	pageLinks  = regexp.MustCompile(`<a\s[^>]*href="(/[^"]*)"`)
)

// morePages are those of single subjects, which no browser test of all pages opens.
var morePages = []string{
	"/alerts", "/alerts?rule=success_rate", "/queues", "/queues/notify", "/queues/compensate", "/analytics", "/merchants/m1", "/merchants/m2",
	"/operators", "/roles", "/settings", "/settings/approval", "/settings/skus/new", "/merchants/new", "/merchants/m1/settings", "/suppliers/new",
}

// offered returns what a page offers, by method: the forms that it would send, and where it leads.
func offered(body string) map[string][]string {
	all := map[string][]string{}
	add := func(method string, found [][]string) {
		for _, f := range found {
			all[method] = append(all[method], html.UnescapeString(f[1]))
		}
	}
	for _, form := range postForm.FindAllString(body, -1) {
		add(http.MethodPost, formAction.FindAllStringSubmatch(form, -1))
	}
	add(http.MethodPost, otherPosts.FindAllStringSubmatch(body, -1))
	add(http.MethodGet, pageLinks.FindAllStringSubmatch(body, -1))
	return all
}

// routeOf returns the route that serves an address.
func routeOf(routes []web.Route, method, address string) (web.Route, bool) {
	path, _, _ := strings.Cut(address, "?")
	path, _, _ = strings.Cut(path, "#")
	parts := strings.Split(path, "/")
	for _, r := range routes {
		want := strings.Split(r.Path, "/")
		same := r.Method == method && len(want) == len(parts)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == parts[i] || strings.HasPrefix(want[i], ":") && parts[i] != "" || want[i] == "*"
		}
		if same {
			return r, true
		}
	}
	return web.Route{}, false
}

// No page offers its reader an act or a page that the server would refuse: every role reads every
// page that it may open, and each form and each link there is compared with the table of routes.
func TestNoPageOffersWhatItsReaderMayNot(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	seen := append(h.details(t), allPages...)
	for _, path := range morePages {
		seen = append(seen, namedPage{path: path})
	}
	routes := h.Routes()
	forms := map[string]int{}
	for _, role := range access.AllRoles {
		cookie := h.SignIn(t, role)
		for _, p := range seen {
			got := h.Page(t, cookie, p.path)
			if got.Status != http.StatusOK {
				continue
			}
			for method, addresses := range offered(got.Body) {
				for _, address := range addresses {
					r, known := routeOf(routes, method, address)
					switch {
					case !known && strings.HasPrefix(address, "/static/"):
					case !known:
						t.Errorf("%s as %s: %s %s has no route", p.path, role, method, address)
					case r.Audience == web.ForOperator && !h.Policy.Allows(access.RolesOf(role), r.Permission):
						t.Errorf("%s as %s offers %s %s, which needs %s", p.path, role, method, address, r.Permission)
					case method == http.MethodPost && !strings.HasPrefix(r.Path, "/me") && r.Path != "/logout":
						forms[string(role)]++
					}
				}
			}
		}
	}
	if forms["viewer"] >= forms["ops"] || forms["ops"] == 0 || forms["lead"] == 0 || forms["finance"] == 0 {
		t.Errorf("forms by role: %v", forms)
	}
	t.Logf("forms by role: %v", forms)
}

// acting returns the buttons of a page with which its reader acts, apart from their own settings: those
// that are not disabled and send a form with POST, or open one.
func acting(t *testing.T, body string) (all []string) {
	t.Helper()
	page, err := dom.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range page.Descendants() {
		if n.Data != "button" {
			continue
		}
		of := attributesOf(n)
		opens, opener := of["data-open"]
		if _, disabled := of["disabled"]; disabled || of["type"] == "button" && !opener {
			continue
		}
		form := map[string]string{}
		for over := range n.Ancestors() {
			if over.Data == "form" {
				form = attributesOf(over)
			}
		}
		own := form["action"] == "/me" || strings.HasPrefix(form["action"], "/me/") || form["action"] == "/logout"
		if opener || strings.EqualFold(form["method"], "post") && !own {
			all = append(all, fmt.Sprintf("%s%s %q", form["action"], opens, of))
		}
	}
	return all
}

func attributesOf(n *dom.Node) map[string]string {
	all := map[string]string{}
	for _, a := range n.Attr {
		all[a.Key] = a.Val
	}
	return all
}
