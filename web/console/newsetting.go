package console

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/views/link"
	"backstop/views/partners"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// newPage asks for what identifies a new object.
func (s *settingPages) newPage(c *fiber.Ctx) error {
	return s.showNew(c, http.StatusOK, map[string]string{}, nil)
}

func (s *settingPages) showNew(c *fiber.Ctx, status int, typed, problem map[string]string) error {
	d := partners.NewObject{Section: s.section, Typed: typed, Problem: problem}
	for _, kind := range s.Applies.Kinds {
		d.Kinds = append(d.Kinds, kind.Name)
	}
	if s.section.Kind == settings.PayoutAccountKind {
		merchants, _ := apply.SectionOf("merchants")
		codes, err := apply.Codes(c.UserContext(), s.Applies, merchants)
		if err != nil {
			return err
		}
		d.Codes = codes
	}
	return s.Render(c, status, partners.SettingsNew(s.Page(c), d))
}

var tNoKind = text.Text{ZH: "请选择一种类型", EN: "choose one of the kinds"}

var tExists = text.Text{ZH: "已存在：请换一个代码", EN: "it exists already: choose another code"}

// add begins a new object: a draft, which the form shows. Of a merchant it has everything, so that it
// can be reviewed at once.
func (s *settingPages) add(c *fiber.Ctx) error {
	asked := map[string]string{}
	for _, name := range []string{"merchant", "code", "name", "kind", "url"} {
		asked[name] = strings.TrimSpace(web.Field(c, name))
	}
	code := asked["code"]
	if s.section.Kind == settings.PayoutAccountKind {
		code = asked["merchant"] + ":" + code
	}
	p := s.Page(c)
	refuse := func(field, problem string) error {
		return s.showNew(c, http.StatusUnprocessableEntity, asked, map[string]string{field: problem})
	}
	e, err := apply.ReadEntry(c.UserContext(), s.Applies, s.section, code)
	if err != nil {
		return err
	}
	if e.Stored || code == "new" { // which is the path of this form
		return refuse("code", p.T(tExists))
	}
	if _, err := s.Applies.Kinds.Find(asked["kind"]); err != nil && s.section.Kind == "supplier" {
		return refuse("kind", p.T(tNoKind))
	}
	typed := apply.Typed{}
	for field, path := range map[string]string{"name": "name", "kind": "kind", "url": "notify.urls"} {
		if asked[field] != "" {
			typed[path] = asked[field]
		}
	}
	switch s.section.Kind {
	case "merchant":
		makeSecret(typed, "api_key")
		makeSecret(typed, "signing_secret")
	case "supplier":
		typed["enabled"] = "false" // until it has been tried
	}
	edit, err := e.Edit(s.section.Form(e, typed["kind"], s.Applies.Kinds), typed)
	if err == nil {
		_, err = apply.Preview(c.UserContext(), s.Applies, edit)
	}
	invalid, wrong := errors.AsType[*apply.Invalid](err)
	if err != nil && !wrong {
		return err
	}
	for _, problem := range problemsOf(invalid) {
		if s.section.Identifies(problem.Field) {
			return refuse("code", p.T(apply.Say(problem.Text)))
		}
		if strings.HasPrefix(problem.Field, "notify.urls") {
			return refuse("url", p.T(apply.Say(problem.Text)))
		}
	}
	draft := apply.Draft{Object: e.Object, Typed: typed, Version: e.Version}
	if err := s.drafts().Save(c.UserContext(), web.Operator(c).ID, draft); err != nil {
		return err
	}
	page := string(link.Settings(s.section.Word, code))
	if !wrong {
		page += "/review"
	}
	return c.Redirect(page, http.StatusSeeOther)
}

// makeSecret enters a new secret, which is shown once it has been applied.
func makeSecret(typed apply.Typed, path string) {
	switch path {
	case "signing_secret":
		typed[path] = apply.NewSigningSecret()
	case "api_key", "payout_key":
		raw := make([]byte, 24)
		_, _ = rand.Read(raw) // it never fails
		typed[path] = "sk_live_" + hex.EncodeToString(raw)
	default:
		return
	}
	if made := strings.Fields(typed[madeField]); !slices.Contains(made, path) {
		typed[madeField] = strings.Join(append(made, path), " ")
	}
}

// madeField is the field of a draft with the paths of the secrets that were made here.
const madeField = "made"
