package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/calendar"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund"
	"backstop/internal/list"
	"backstop/internal/savedview"
	"backstop/views/search"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// preset is a view that comes with the program.
type preset struct {
	key   string
	label text.Text
	query url.Values
}

// presets returns those of a list. What is this month or yesterday is so in the viewer's zone.
func presets(p *ui.Page, name string, spec *list.Spec, at url.Values) (all []preset) {
	now := p.Now.In(p.Zone)
	yesterday := calendar.DayStart(now, -1)
	for _, part := range console.RiskParts(spec) {
		all = append(all, preset{"risk-" + string(part), search.RiskView(part), url.Values{"risk": {string(part)}}})
	}
	switch spec {
	case console.OrderList:
		query := url.Values{"paid": {console.Days(fund.MonthLayout, now)}}
		if merchant := at.Get("merchant"); merchant != "" {
			query.Set("merchant", merchant)
		}
		all = append(all, preset{"paid", search.PaidView(p.Merchant(at.Get("merchant"))), query})
	case console.ApprovalList:
		all = append(all, preset{"decided", search.DecidedView(), url.Values{"decided": {console.Days(console.DayLayout, yesterday)}}})
	case console.ActList:
		all = append(all, preset{"decided", search.DecidedView(), url.Values{
			"object": {"approval"}, "window": {ui.DayWindow},
			"to": {yesterday.Format(time.DateOnly)},
		}})
	}
	return all
}

// viewBar returns the views of a list with their last counts; nil = the list has none.
func (s *handlers) viewBar(ctx context.Context, c *fiber.Ctx, l *listing) (*ui.ViewBar, error) {
	name := l.filter.Spec.Name
	of, ok := s.Views.Lists[name]
	if !ok || of.Spec != l.filter.Spec || l.p.Limited || !s.Policy.Allows(l.p.Roles, of.Permission) {
		return nil, nil
	}
	rows, err := s.Views.For(ctx, l.p.UserID, name)
	if err != nil {
		return nil, err
	}
	at := l.query.Values.Encode()
	bar := &ui.ViewBar{
		List: name, Key: act.NewKey(), Filter: at, MayShare: s.Policy.Allows(l.p.Roles, access.ShareViews),
		MayWatch: of.Alerts(),
	}
	add := func(t ui.ViewTab, query string) bool {
		t.Link, t.Current = l.query.Path, query == at
		if query != "" {
			t.Link += "?" + query
		}
		t.Count = s.counts.last(countKey(l.p, name, query))
		if t.Current {
			bar.Filter = ""
		}
		bar.Tabs = append(bar.Tabs, t)
		return t.Current
	}
	add(ui.ViewTab{Label: l.p.T(text.All)}, "")
	for _, x := range presets(l.p, name, of.Spec, l.query.Values) {
		add(search.PresetTab(l.p, x.key, x.label), x.query.Encode())
	}
	for _, v := range rows {
		t := search.ViewTab(l.p, v)
		problem, err := s.problemOf(ctx, of, v, v.Query == at)
		if err != nil {
			return nil, err
		}
		if problem != (search.ViewProblem{}) {
			t.Icon, t.Hint = "triangle-alert", problem.In(l.p)
		}
		if add(t, v.Query); v.Query == at {
			bar.Broken, bar.Saved = problem.In(l.p), c.Query("saved") == savedview.ID(v.ID) && v.OwnerID == l.p.UserID
		}
	}
	return bar, nil
}

// viewParams are the parameters of a view's query besides the fields of its list.
var viewParams = []string{"window", "to", "from", "sort", "columns"}

// problemOf returns what is wrong with a view: a field that the list does not have, a value that
// it does not take, or, if deep is set, one that nothing can match, such as a merchant that was
// deleted.
func (s *handlers) problemOf(ctx context.Context, of savedview.List, v savedview.View, deep bool) (search.ViewProblem, error) {
	values, err := url.ParseQuery(v.Query)
	if err != nil {
		return search.ViewProblem{Kind: search.ViewUnreadable}, nil
	}
	for name := range values {
		if !slices.ContainsFunc(of.Spec.Fields, func(f list.Field) bool { return f.Name == name }) && !slices.Contains(viewParams, name) {
			return search.ViewProblem{Kind: search.ViewField, Name: name}, nil
		}
	}
	q := list.Query{Spec: of.Spec, Scope: list.All()}
	for _, f := range of.Spec.Fields {
		q = q.With(f.Name, values.Get(f.Name))
	}
	for _, t := range q.Terms {
		if (list.Query{Spec: of.Spec, Terms: []list.Term{t}}).Check() != nil {
			return search.ViewProblem{Kind: search.ViewValue, Name: t.Name, Value: t.Value}, nil
		}
	}
	if !deep {
		return search.ViewProblem{}, nil
	}
	missing, err := q.Missing(ctx, s.DB)
	if err != nil || missing == nil {
		return search.ViewProblem{}, err
	}
	return search.ViewProblem{Kind: search.ViewMissing, Name: missing.Name, Value: missing.Value}, nil
}

// How long the counts of views may take and are kept.
const (
	// countTime bounds the count of one view, countsTime all of a list.
	countTime  = 500 * time.Millisecond
	countsTime = 2 * time.Second
	// countEvery is how long a count is reused; maxCounts bounds how many are kept.
	countEvery = 15 * time.Second
	maxCounts  = 2000
)

// viewCounter keeps counts, because a list has many views and many readers. Its zero value is
// ready for use.
type viewCounter struct {
	mu   sync.Mutex
	kept map[string]keptCount
}

type keptCount struct {
	at   time.Time
	text string
}

// last returns a count if it is recent; "" = none.
func (v *viewCounter) last(key string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.kept[key]; time.Since(k.at) < countEvery {
		return k.text
	}
	return ""
}

func (v *viewCounter) keep(key, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil || len(v.kept) >= maxCounts {
		v.kept = map[string]keptCount{}
	}
	v.kept[key] = keptCount{time.Now(), text}
}

// countKey is what a count depends on: days are those of a zone.
func countKey(p *ui.Page, name, query string) string {
	return name + "?" + query + " " + p.Zone.String()
}

// viewCounts returns the counts of a list's views to a script, and redirects any other request to
// the views. A count that takes too long is left out.
func (s *handlers) viewCounts(c *fiber.Ctx) error {
	name := c.Query("list")
	of, ok := s.Views.Lists[name]
	if !ok {
		return act.ErrNotFound
	}
	if !web.IsFragment(c) {
		return c.Redirect("/views", http.StatusSeeOther)
	}
	p := s.Page(c)
	if !s.Policy.Allows(p.Roles, of.Permission) {
		return &act.Denied{Permission: of.Permission, Roles: s.Policy.RolesWith(of.Permission)}
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), countsTime)
	defer cancel()
	rows, err := s.Views.For(ctx, p.UserID, name)
	if err != nil {
		return err
	}
	at := url.Values{}
	if merchant := c.Query("merchant"); merchant != "" {
		at.Set("merchant", merchant)
	}
	queries := map[string]string{}
	keys := []string{}
	for _, x := range presets(p, name, of.Spec, at) {
		queries[x.key], keys = x.query.Encode(), append(keys, x.key)
	}
	for _, v := range rows {
		key := search.ViewKey(v)
		queries[key], keys = v.Query, append(keys, key)
	}
	parts := make([]templ.Component, 0, len(keys))
	for _, key := range keys {
		parts = append(parts, search.CountOf(p, key, s.count(ctx, c, p, of, queries[key])))
	}
	return s.Render(c, http.StatusOK, templ.Join(parts...))
}

// count counts the rows of a view; "–" = it could not be counted in time, or is broken.
func (s *handlers) count(ctx context.Context, c *fiber.Ctx, p *ui.Page, of savedview.List, query string) string {
	key := countKey(p, of.Spec.Name, query)
	if text := s.counts.last(key); text != "" {
		return text
	}
	text := "–"
	if l := s.listOf(c, p, of, query); l.Err == nil {
		ctx, cancel := context.WithTimeout(ctx, countTime)
		defer cancel()
		if n, more, err := l.filter.Count(ctx, s.DB, l.span, list.CountRows); err == nil {
			text = ui.Count(n) + ui.Plus(more)
		}
	}
	s.counts.keep(key, text)
	return text
}

// listOf reads a view as the list reads its URL, from the newest row on.
func (s *handlers) listOf(c *fiber.Ctx, p *ui.Page, of savedview.List, query string) *listing {
	if values, err := url.ParseQuery(query); err == nil {
		for _, place := range []string{"cursor", "newer"} {
			values.Del(place)
		}
		query = values.Encode()
	}
	uri := c.Request().URI()
	before := string(uri.QueryString())
	uri.SetQueryString(query)
	defer uri.SetQueryString(before)
	return s.listOn(c, p, of.Spec, "/"+of.Spec.Name, of.Always)
}

// What the page of the views says after an act.
const (
	viewChanged  = "changed"
	viewShared   = "shared"
	viewUnshared = "unshared"
	viewDeleted  = "deleted"
	viewRestored = "restored"
)

// viewsPage lists the views of all lists that the viewer may open.
func (s *handlers) viewsPage(c *fiber.Ctx) error {
	p := s.Page(c)
	rows, err := s.Views.All(c.UserContext(), p.UserID)
	if err != nil {
		return err
	}
	data := search.ViewsData{MayShare: s.Policy.Allows(p.Roles, access.ShareViews), Did: c.Query("did")}
	data.Of, _ = strconv.ParseInt(c.Query("view"), 10, 64)
	for _, v := range rows {
		of, ok := s.Views.Lists[v.List]
		if !ok || !s.Policy.Allows(p.Roles, of.Permission) {
			continue
		}
		problem, err := s.problemOf(c.UserContext(), of, v, v.DeletedAt == nil)
		if err != nil {
			return err
		}
		data.Rows = append(data.Rows, search.ViewRow{View: v, Spec: of.Spec, Problem: problem, MayWatch: of.Alerts(), Key: act.NewKey()})
	}
	return s.Render(c, http.StatusOK, search.Views(p, data))
}

// readView reads the filter of a list that is saved as a view.
func (s *handlers) readView(c *fiber.Ctx, call *act.Call) (err error) {
	of, ok := s.Views.Lists[web.Field(c, "list")]
	if !ok {
		return act.ErrNotFound
	}
	l := s.listOf(c, s.Page(c), of, web.Field(c, "query"))
	if l.Err != nil {
		return l.Err
	}
	query := l.query.Values.Encode()
	if query == "" {
		return web.Invalid("query", text.Text{ZH: "请先设置筛选条件", EN: "set a filter first"})
	}
	c.Request().PostArgs().Set("query", query)
	call.Params, err = formParams(c, "", s.Acts.Kind(savedview.SaveAct).Params.Fields, nil)
	return err
}

// listName is the list whose filter a form saves.
func listName(c *fiber.Ctx) (string, error) { return web.Field(c, "list"), nil }

// showSaved leads to the list with the filter that was saved.
func showSaved(c *fiber.Ctx, done web.Acted) error {
	at := "/" + done.Ref.ID + "?" + web.Field(c, "query")
	if saved, ok := done.Details["id"].(string); ok {
		at += "&saved=" + saved
	}
	return c.Redirect(at, http.StatusSeeOther)
}

// showView leads to the views; did is what was done with the one in the path.
func showView(did string) func(act.Ref) string {
	return func(of act.Ref) string { return "/views?did=" + did + "&view=" + savedview.ID(of.Row) }
}

// showChanged leads to the views, and says whether one is shared from now on.
func showChanged(c *fiber.Ctx, done web.Acted) error {
	did := map[string]string{"": viewChanged, "yes": viewShared}[web.Field(c, "shared")]
	return showDone(c, showView(cmp.Or(did, viewUnshared))(done.Ref))
}
