package console

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/text"
	"backstop/internal/orderquery"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/internal/suppliercall"
	"backstop/views/link"
	"backstop/views/partners"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

const (
	// codesShown bounds the objects of one section on the page of the settings.
	codesShown = 200
	// changesShown bounds the history on the page of an object.
	changesShown = 50
	// maxSettingChanges bounds the changes in which the times of secrets are looked up.
	maxSettingChanges = 1000
)

// settingRoutes are the pages of the settings: of each section a form for a new object and one for
// each object, which is reviewed before it is applied.
func (s *handlers) settingRoutes() (all []web.Route) {
	route := func(method, path string, h fiber.Handler) web.Route {
		return web.Route{Method: method, Path: path, Audience: web.ForOperator, Permission: access.ProposeSettings, Handler: h}
	}
	index := route(http.MethodGet, "/settings", s.settingsPage)
	index.Menu = web.Menu{Icon: "settings", Label: text.Settings}
	history := route(http.MethodGet, historyPath+":object", s.historyPage)
	history.Permission = access.ApproveSettings
	all = append(all, index, history, s.onAct(web.ActRoute{
		Path: "/suppliers/:supplier/try", Kind: orderquery.TryAct, Ref: byID(web.SupplierCode), Then: showTrial,
	}))
	for _, section := range apply.Sections {
		o := &settingPages{s, section}
		if !section.One {
			path := string(link.NewObject(section.Word))
			all = append(all, route(http.MethodGet, path, o.newPage), route(http.MethodPost, path, o.add))
		}
		path := string(link.Settings(section.Word, ""))
		switch section.Word {
		case "merchants", "suppliers":
			path = "/" + section.Word + "/:" + section.Kind + "/settings"
		case "approval":
		default:
			path += "/:code"
		}
		all = append(all, route(http.MethodGet, path, o.page), route(http.MethodPost, path, o.save),
			route(http.MethodPost, path+"/discard", o.discard), route(http.MethodGet, path+"/review", o.review),
			s.onAct(web.ActRoute{Path: path + "/review", Kind: apply.EditAct, Ref: o.ref, Read: o.readDraft, Then: o.applied}))
	}
	return all
}

// settingsPage lists what can be edited.
func (s *handlers) settingsPage(c *fiber.Ctx) (err error) {
	ctx := c.UserContext()
	x := partners.SettingsIndex{}
	if x.Drafts, err = s.drafts().All(ctx, web.Operator(c).ID); err != nil {
		return err
	}
	for _, section := range apply.Sections {
		codes, err := apply.Codes(ctx, s.Applies, section)
		if err != nil {
			return err
		}
		shown := min(len(codes), codesShown)
		x.Sections = append(x.Sections, partners.SectionObjects{Section: section, Codes: codes[:shown], More: len(codes) - shown})
	}
	return s.Render(c, http.StatusOK, partners.Settings(s.Page(c), x))
}

func (s *handlers) drafts() apply.Drafts { return apply.Drafts{Env: s.Applies} }

// historyPath is where whoever approves changes of settings sees those of one object.
const historyPath = "/settings/history/"

// historyPage lists the changes of the object in the path.
func (s *handlers) historyPage(c *fiber.Ctx) error {
	id, err := url.PathUnescape(c.Params("object"))
	section, o, ok := apply.ObjectOf(id)
	if err != nil || !ok || !web.IsStorable(id) {
		return act.ErrNotFound
	}
	rows, err := settings.History(c.UserContext(), s.DB, o, 0, changesShown)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, partners.SettingHistory(s.Page(c), section, o, rows))
}

// historyOf is where the viewer sees the changes of an object of the settings; "" = nowhere.
func (s *handlers) historyOf(roles access.Roles, id string) templ.SafeURL {
	section, o, ok := apply.ObjectOf(id)
	switch {
	case !ok:
		return ""
	case s.Policy.Allows(roles, access.ProposeSettings):
		return link.Settings(section.Word, section.Code(o)) + "#changes-title"
	case s.Policy.Allows(roles, access.ApproveSettings):
		return templ.SafeURL(historyPath + url.PathEscape(id))
	}
	return ""
}

// settingPages are the pages of one section.
type settingPages struct {
	*handlers

	section apply.Section
}

// object identifies the object in the path.
func (s *settingPages) object(c *fiber.Ctx) (settings.Object, error) {
	if s.section.One {
		return s.section.Object(""), nil
	}
	param := "code"
	if s.section.Word == "merchants" || s.section.Word == "suppliers" {
		param = s.section.Kind
	}
	code, err := url.PathUnescape(c.Params(param))
	if err != nil || code == "" || !web.IsStorable(code) {
		return settings.Object{}, act.ErrNotFound
	}
	return s.section.Object(code), nil
}

func (s *settingPages) ref(c *fiber.Ctx) (act.Ref, error) {
	o, err := s.object(c)
	return act.Ref{ID: o.String()}, err
}

// opened is an object with the operator's draft of it.
type opened struct {
	entry *apply.Entry
	form  []apply.FormField
	draft *apply.Draft // nil = there is none
}

// typed is what the draft has.
func (x opened) typed() apply.Typed {
	if x.draft == nil {
		return apply.Typed{}
	}
	return x.draft.Typed
}

// open reads the object in the path. An object that is not stored is there while it has a draft.
func (s *settingPages) open(c *fiber.Ctx) (x opened, err error) {
	o, err := s.object(c)
	if err != nil {
		return x, err
	}
	ctx := c.UserContext()
	if x.draft, err = s.drafts().Of(ctx, web.Operator(c).ID, o); err != nil {
		return x, err
	}
	if x.entry, err = apply.ReadEntry(ctx, s.Applies, s.section, s.section.Code(o)); err != nil {
		return x, err
	}
	if !x.entry.Stored && x.draft == nil {
		return x, act.ErrNotFound
	}
	kind := x.typed()["kind"]
	x.form = s.section.Form(x.entry, kind, s.Applies.Kinds)
	return x, nil
}

// others are the changes of the object since the draft began.
func (s *settingPages) others(c *fiber.Ctx, x opened) ([]settings.HistoryRow, error) {
	if x.draft == nil || !x.entry.Stored {
		return nil, nil
	}
	return settings.History(c.UserContext(), s.DB, x.entry.Object, x.draft.Version, changesShown)
}

func (s *settingPages) page(c *fiber.Ctx) error {
	x, err := s.open(c)
	if err != nil {
		return err
	}
	return s.show(c, http.StatusOK, x, nil, false)
}

// show draws the form with the draft, and what is wrong with it.
func (s *settingPages) show(c *fiber.Ctx, status int, x opened, invalid *apply.Invalid, nothing bool) (err error) {
	ctx := c.UserContext()
	d := partners.SettingsData{Section: s.section, Entry: x.entry, Draft: x.draft, Nothing: nothing}
	history, err := settings.History(ctx, s.DB, x.entry.Object, 0, maxSettingChanges)
	if err != nil {
		return err
	}
	d.History = history[:min(len(history), changesShown)]
	if d.Others, err = s.others(c, x); err != nil {
		return err
	}
	if d.Did, err = s.done(c, "setting", x.entry.Object.String()); err != nil {
		return err
	}
	if s.section.Kind == "supplier" && x.entry.Stored {
		if d.GoLive, err = s.goLive(c, x.entry.Object.ID); err != nil {
			return err
		}
	}
	p := s.Page(c)
	was, times := map[string]string{}, x.entry.SecretTimes(history)
	for _, f := range x.form {
		in := partners.SettingsInput{FormField: f, Shown: f.Value, SetAt: cmp.Or(times[f.Path], times[f.Path+"_1"])}
		if typed, is := x.typed()[f.Path]; is {
			if in.Typed = true; f.Input != apply.Password && f.Input != apply.Signing {
				in.Shown = typed
			}
		}
		was[f.Path] = f.Value
		d.Inputs = append(d.Inputs, in)
	}
	for _, problem := range problemsOf(invalid) {
		at := slices.IndexFunc(d.Inputs, func(in partners.SettingsInput) bool {
			return problem.Field == in.Path || isWithin(problem.Field, in.Path)
		})
		says := p.T(apply.Say(problem.Text))
		if at < 0 {
			d.Problems = append(d.Problems, strings.TrimPrefix(problem.Field+": "+says, ": "))
		} else if d.Inputs[at].Problem == "" {
			d.Inputs[at].Problem = strings.TrimPrefix(strings.TrimPrefix(problem.Field, d.Inputs[at].Path)+" "+says, " ")
		}
	}
	raw, err := json.Marshal(was)
	if err != nil {
		return err
	}
	d.Was = base64.RawURLEncoding.EncodeToString(raw)
	return s.Render(c, status, partners.SettingsPage(p, d))
}

// showTrial shows the answer to a query of a supplier.
func showTrial(c *fiber.Ctx, done web.Acted) error {
	page := string(link.Settings("suppliers", done.Ref.ID))
	call, ok := done.Result.(*suppliercall.Done)
	if !ok { // a form that is sent twice queries once
		return showDone(c, page)
	}
	return c.Redirect(page+"?tried="+strconv.FormatInt(call.ID, 10), http.StatusSeeOther)
}

func problemsOf(invalid *apply.Invalid) []apply.FieldProblem {
	if invalid == nil {
		return nil
	}
	return invalid.Fields
}

// isWithin reports whether a path is of a field, or of a part of it: signing secrets have two names.
func isWithin(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || strings.ContainsRune(".[s", rune(rest[0])))
}

// save stores what was typed as the operator's draft, and leads to its review.
func (s *settingPages) save(c *fiber.Ctx) error {
	x, err := s.open(c)
	if err != nil {
		return err
	}
	var was map[string]string
	raw, err := base64.RawURLEncoding.DecodeString(web.Field(c, "was"))
	if err != nil || json.Unmarshal(raw, &was) != nil {
		return web.Invalid("was", web.OpenAgain)
	}
	version, err := strconv.ParseInt(web.Field(c, "version"), 10, 64)
	if err != nil || version < 0 {
		return web.Invalid("version", web.OpenAgain)
	}
	x.draft = &apply.Draft{Object: x.entry.Object, Typed: x.typed(), Version: version, At: s.DB.Now()}
	s.readForm(c, x, was)
	edit, err := x.entry.Edit(x.form, x.draft.Typed)
	var plan *apply.Plan
	if err == nil {
		plan, err = apply.Preview(c.UserContext(), s.Applies, edit)
	}
	invalid, wrong := errors.AsType[*apply.Invalid](err)
	if err != nil && !wrong {
		return err
	}
	if !wrong && plan.What == settings.Unchanged {
		x.draft = nil
		if err := s.drafts().Discard(c.UserContext(), web.Operator(c).ID, x.entry.Object); err != nil {
			return err
		}
		return s.show(c, http.StatusOK, x, nil, true)
	}
	if err := s.drafts().Save(c.UserContext(), web.Operator(c).ID, *x.draft); err != nil {
		return err
	}
	if wrong {
		return s.show(c, http.StatusUnprocessableEntity, x, invalid, false)
	}
	return c.Redirect(string(link.Settings(s.section.Word, s.section.Code(x.entry.Object)))+"/review", http.StatusSeeOther)
}

// readForm takes over what was changed in the form. A secret that was typed before stays.
func (s *settingPages) readForm(c *fiber.Ctx, x opened, was map[string]string) {
	typed, args := x.draft.Typed, c.Request().PostArgs()
	for _, f := range x.form {
		is := asTyped(web.Field(c, f.Path))
		switch secret := f.Input == apply.Password || f.Input == apply.Signing; {
		case !args.Has(f.Path), secret && is == "":
		case is == asTyped(was[f.Path]) && !secret:
			delete(typed, f.Path)
		default:
			typed[f.Path] = is
		}
	}
	if args.Has(apply.Overlap) {
		typed[apply.Overlap] = web.Field(c, apply.Overlap)
	}
	for _, path := range args.PeekMulti("make") {
		makeSecret(typed, string(path))
	}
}

// asTyped is a text as a form may send it: without blanks around it, and with lines that end in \n.
func asTyped(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// review shows what the draft would change.
func (s *settingPages) review(c *fiber.Ctx) error {
	x, err := s.open(c)
	if err != nil {
		return err
	}
	edit, err := x.entry.Edit(x.form, x.typed())
	var plan *apply.Plan
	if err == nil {
		plan, err = apply.Preview(c.UserContext(), s.Applies, edit)
	}
	if invalid, wrong := errors.AsType[*apply.Invalid](err); wrong {
		return s.show(c, http.StatusUnprocessableEntity, x, invalid, false)
	}
	if err != nil {
		return err
	}
	if plan.What == settings.Unchanged {
		return s.show(c, http.StatusOK, x, nil, true)
	}
	r := partners.SettingsReview{Section: s.section, Plan: plan, Key: act.NewKey()}
	if r.Others, err = s.others(c, x); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, partners.SettingsReviewed(s.Page(c), r))
}

// localDraft is where the draft that is applied is for applied.
type localDraft struct{}

// readDraft makes the operator's draft the edit that is applied, if the settings are still those that
// were reviewed.
func (s *settingPages) readDraft(c *fiber.Ctx, call *act.Call) error {
	x, err := s.open(c)
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(web.Field(c, "version"), 10, 64)
	if err != nil || version < 1 {
		return web.Invalid("version", web.OpenAgain)
	}
	edit, err := x.entry.Edit(x.form, x.typed())
	if err != nil {
		return act.ErrChanged // it was valid when it was reviewed
	}
	c.Locals(localDraft{}, x)
	call.Params, err = json.Marshal(map[string]any{"entry": edit.Entry, "version": version})
	return err
}

// applied ends the draft and shows what was done: secrets that were made, or the proposal.
func (s *settingPages) applied(c *fiber.Ctx, done web.Acted) error {
	x := c.Locals(localDraft{}).(opened)
	plan, first := done.Result.(*apply.Plan)
	page := string(link.Settings(s.section.Word, s.section.Code(x.entry.Object)))
	if !first {
		return showDone(c, page)
	}
	if err := s.Settings.Refresh(c.UserContext()); err != nil {
		return err
	}
	if err := s.drafts().Discard(c.UserContext(), web.Operator(c).ID, x.entry.Object); err != nil {
		return err
	}
	made := partners.SettingsMade{Section: s.section, Object: x.entry.Object, Key: act.NewKey()}
	for _, path := range strings.Fields(x.typed()[madeField]) {
		at := slices.IndexFunc(x.form, func(f apply.FormField) bool { return f.Path == path })
		made.Secrets = append(made.Secrets, partners.MadeSecret{Label: x.form[at].Label, Value: x.typed()[path]})
	}
	switch {
	case len(made.Secrets) > 0:
		return s.Render(c, http.StatusOK, partners.SettingsSecrets(s.Page(c), made))
	case len(plan.Approvals) > 0:
		return c.Redirect("/approvals/"+plan.Approvals[0], http.StatusSeeOther)
	}
	return showDone(c, page)
}

// discard deletes the operator's draft.
func (s *settingPages) discard(c *fiber.Ctx) error {
	x, err := s.open(c)
	if err != nil {
		return err
	}
	if err := s.drafts().Discard(c.UserContext(), web.Operator(c).ID, x.entry.Object); err != nil {
		return err
	}
	if !x.entry.Stored {
		return c.Redirect("/settings", http.StatusSeeOther)
	}
	return c.Redirect(string(link.Settings(s.section.Word, s.section.Code(x.entry.Object))), http.StatusSeeOther)
}
