package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/notify"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
	"gopkg.in/yaml.v3"
)

// settingsPath is the prefix of the paths of the apply file's objects.
const settingsPath = "/api/v1/admin/"

// settingRoutes are those that read and change the objects of the apply file one by one, and its
// schema. Only people may.
func (s *handlers) settingRoutes() []web.Route {
	route := func(method, path string, h fiber.Handler, request, answer any) web.Route {
		return web.Route{
			Method: method, Path: settingsPath + path, Audience: web.ForMonitor, Permission: access.ProposeSettings, Person: true,
			Handler: h, Request: request, Answer: answer,
		}
	}
	all := []web.Route{route(http.MethodGet, "schema", s.applySchema, nil, nil)}
	for _, section := range apply.Sections {
		path := section.Word
		if !section.One {
			path += "/:code"
		}
		all = append(all, route(http.MethodGet, path, s.getSetting(section), nil, settingView{}),
			route(http.MethodPut, path, s.putSetting(section), settingRequest{}, editView{}))
	}
	return all
}

// applySchema is the JSON schema of the apply file.
func (s *handlers) applySchema(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/schema+json")
	return c.Send(apply.Schema(s.Applies.Kinds))
}

// settingView is one object. A secret in it is a reference, "stored:FIELD".
type settingView struct {
	Object     json.RawMessage `json:"object"`
	Version    int64           `json:"version"`
	Secrets    []secretView    `json:"secrets"`
	Unreadable []string        `json:"unreadable"`
}

// secretView is a stored secret. SetAt is null if it was set before there was a history.
type secretView struct {
	Field      string  `json:"field"`
	SetAt      *string `json:"set_at"`
	LastUsedAt *string `json:"last_used_at" doc:"When a key of the API was used last, to the hour; null = not since it was set, or it is no such key."`
}

// maxHistory bounds the changes in which the times of secrets are looked up.
const maxHistory = 1000

func (s *handlers) getSetting(section apply.Section) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.UserContext()
		e, err := apply.ReadEntry(ctx, s.Applies, section, settingCode(c))
		if err == nil && !e.Stored {
			err = act.ErrNotFound
		}
		if err != nil {
			return err
		}
		history, err := settings.History(ctx, s.DB, e.Object, 0, maxHistory)
		if err != nil {
			return err
		}
		v := settingView{Version: e.Version, Secrets: []secretView{}, Unreadable: append([]string{}, e.Unread...)}
		if v.Object, err = e.JSON(); err != nil {
			return err
		}
		times, keys := e.SecretTimes(history), access.MerchantKeys{}
		if section.Kind == "merchant" {
			if keys, err = access.MerchantKeysOf(ctx, s.DB.Read, e.Object.ID); err != nil {
				return err
			}
		}
		for _, field := range e.Secrets {
			one := secretView{Field: field}
			switch field {
			case "api_key":
				one.LastUsedAt = notify.StampOr(keys.API.UsedAt)
			case "payout_key":
				one.LastUsedAt = notify.StampOr(keys.Payout.UsedAt)
			}
			if at, known := times[field]; known {
				one.SetAt = notify.StampOr(&at)
			}
			v.Secrets = append(v.Secrets, one)
		}
		setETag(c, e.Version)
		return c.JSON(v)
	}
}

func settingCode(c *fiber.Ctx) string {
	code, err := url.PathUnescape(c.Params("code"))
	if err != nil || !web.IsStorable(code) {
		return ""
	}
	return code
}

func setETag(c *fiber.Ctx, version int64) {
	c.Set(fiber.HeaderETag, strconv.Quote(strconv.FormatInt(version, 10)))
}

// settingRequest changes one object: fields that are left out stay, null returns to the default.
type settingRequest struct {
	Object json.RawMessage `json:"object" kind:"raw" required:"true" doc:"The fields as in the apply file; null returns one to its default."`
	Reason string          `json:"reason" max:"10000"`
}

// editView is what an edit did or, with dry_run, would do.
type editView struct {
	Object      string           `json:"object"`
	DryRun      bool             `json:"dry_run"`
	Outcome     []string         `json:"outcome"` // as the command apply reports it
	Differences []differenceView `json:"differences"`
	Approvals   []string         `json:"approvals"`
	Version     int64            `json:"version"`
}

type differenceView struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
	Waits bool   `json:"waits"`
}

// Refusals of an edit by its version.
var (
	errNoVersion = &web.Error{
		Status: http.StatusPreconditionRequired, Code: "version_needed", Message: "send the ETag of the object as If-Match",
	}
	errOtherVersion = &web.Error{
		Status: http.StatusPreconditionFailed, Code: "changed", Message: "the settings were changed meanwhile: read the object again",
	}
)

func (s *handlers) putSetting(section apply.Section) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, f, r := c.UserContext(), web.ReadFilter(c), requestOf[settingRequest](c)
		f.Only("dry_run")
		dry := f.Yes("dry_run", false)
		if f.Err != nil {
			return f.Err
		}
		e, err := apply.ReadEntry(ctx, s.Applies, section, settingCode(c))
		if err != nil {
			return err
		}
		edit := apply.Edit{Object: e.Object}
		if edit.Version, err = versionOf(c); err != nil {
			return err
		}
		if edit.Version == 0 && e.Stored && !dry {
			return errNoVersion
		}
		if edit.Entry, err = yamlOf(r.Object); err != nil {
			return err
		}
		var plan *apply.Plan
		if dry {
			plan, err = apply.Preview(ctx, s.Applies, edit)
		} else {
			plan, err = s.edit(c, edit, r.Reason)
		}
		if errors.Is(err, act.ErrChanged) {
			return errOtherVersion
		}
		if err != nil {
			return refusedEdit(c, err)
		}
		return s.showPlan(c, plan, dry)
	}
}

// edit makes an edit and what waits a proposal.
func (s *handlers) edit(c *fiber.Ctx, edit apply.Edit, reason string) (*apply.Plan, error) {
	params, err := json.Marshal(map[string]any{"entry": edit.Entry, "version": edit.Version})
	if err != nil {
		return nil, err
	}
	done, err := s.Run(c, web.ActRoute{Kind: apply.EditAct}, act.Call{
		Ref: act.Ref{ID: edit.Object.String()}, Params: params, Reason: cmp.Or(reason, noReason),
	})
	if err != nil {
		return nil, err
	}
	return done.Result.(*apply.Plan), s.Settings.Refresh(c.UserContext())
}

func (s *handlers) showPlan(c *fiber.Ctx, plan *apply.Plan, dry bool) error {
	v := editView{
		Object: plan.Object.String(), DryRun: dry, Outcome: append([]string{}, plan.Lines...), Differences: []differenceView{},
		Approvals: append([]string{}, plan.Approvals...), Version: plan.Version,
	}
	if dry {
		v.Outcome = append(v.Outcome, plan.Object.String()+" "+plan.What)
	} else {
		v.Version = s.Settings.Current().Version
	}
	for _, d := range plan.Differences {
		v.Differences = append(v.Differences, differenceView(d))
	}
	setETag(c, v.Version)
	return c.JSON(v)
}

// versionOf reads If-Match; 0 = any version.
func versionOf(c *fiber.Ctx) (int64, error) {
	text := strings.Trim(strings.TrimPrefix(c.Get(fiber.HeaderIfMatch), "W/"), `"`)
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 {
		return 0, errOtherVersion
	}
	return version, nil
}

// yamlOf returns an object of JSON as the apply file has it. YAML would read some texts of JSON
// differently.
func yamlOf(object json.RawMessage) (string, error) {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil || fields == nil {
		return "", web.InvalidField("object", "use an object")
	}
	text, err := yaml.Marshal(digits(fields))
	return string(text), err
}

// digits makes the numbers of JSON those of YAML, with the same digits.
func digits(v any) any {
	switch is := v.(type) {
	case map[string]any:
		for name, field := range is {
			is[name] = digits(field)
		}
	case []any:
		for i, e := range is {
			is[i] = digits(e)
		}
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: is.String()}
	}
	return v
}

// invalidView names every problem of an object. The first is the error's.
type invalidView struct {
	web.ErrorBody
	Problems []problemView `json:"problems"`
}

type problemView struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// refusedEdit answers an invalid object with its problems.
func refusedEdit(c *fiber.Ctx, err error) error {
	invalid, ok := errors.AsType[*apply.Invalid](err)
	if !ok {
		return err
	}
	v := invalidView{}
	for _, p := range invalid.Fields {
		v.Problems = append(v.Problems, problemView{p.Field, p.Text})
	}
	v.Error.Code, v.Error.Message, v.Error.Field = "invalid_field", v.Problems[0].Message, v.Problems[0].Field
	return c.Status(http.StatusUnprocessableEntity).JSON(v)
}
